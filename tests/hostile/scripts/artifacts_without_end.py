# status: ok
# not kept: exceed the limits: 64 MiB, 1000 files or 10000 entries
# It leaves more files than are kept.
for number in range(1100):
    open("kit/artifacts/%d" % number, "w").close()
say("artifact", name="0", bytes=0)
say("end", status="ok")
