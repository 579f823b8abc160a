# status: ok
# It leaves a child in a session of its own, which holds its output.
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        signal.pause()
    os._exit(0)
os.wait()
say("end", status="ok")
