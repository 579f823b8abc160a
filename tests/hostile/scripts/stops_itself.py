# status: timeout
# seconds: 2
# error: it was still running after 2 s
# It stops itself, and with it whatever it started: only a kill ends it.
if os.fork() == 0:
    os.kill(os.getpid(), signal.SIGSTOP)
os.kill(os.getpid(), signal.SIGSTOP)
say("end", status="ok")
