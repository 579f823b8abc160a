"""A step that includes the tracing of a tf.function, for a sweep over the number of calls to find the break-even."""


def traced_calls(tf, function, mode, calls, *arguments):
    """Return `step(calls=calls)`, which makes a new tf.function of `function` and calls it `calls` times.

    The first call traces the function. In mode "eager", `function` itself is called. `arguments` are passed to each
    call.
    """

    def step(calls=int(calls)):
        run = tf.function(function) if mode == "function" else function
        for _ in range(calls):
            result = run(*arguments)
        return result

    return step
