# status: ok
# not kept: deeper than 8 folders
# It leaves folders in folders, more than a recursion goes through.
os.chdir("kit/artifacts")
for _ in range(1500):
    os.mkdir("d")
    os.chdir("d")
open("data", "w").close()
say("artifact", name="d", bytes=1)
say("end", status="ok")
