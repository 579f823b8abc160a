# status: ok
# not kept: deeper than 8 folders
# It leaves a file below more folders than are walked.
os.makedirs("kit/artifacts/" + "d/" * 30)
open("kit/artifacts/" + "d/" * 30 + "data", "w").close()
say("artifact", name="data", bytes=0)
say("end", status="ok")
