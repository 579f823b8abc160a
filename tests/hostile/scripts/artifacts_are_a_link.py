# status: ok
# It puts a link to the system's own files in the place of its artifacts.
os.rename("kit/artifacts", "elsewhere")
os.symlink("/etc", "kit/artifacts")
say("artifact", name="passwd", bytes=1)
say("end", status="ok")
