"""A step whose tracing is timed with its calls, for a sweep over their number: from how many on is it paid for?"""


def traced_calls(tf, function, mode, calls, *arguments):
    """Return `step(calls=calls)`, which makes a new tf.function of `function` and calls it so often with the arguments.

    Its first call traces it. In mode "eager" the calls are of `function` itself.
    """

    def step(calls=int(calls)):
        run = tf.function(function) if mode == "function" else function
        for _ in range(calls):
            result = run(*arguments)
        return result

    return step
