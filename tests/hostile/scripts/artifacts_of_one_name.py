# status: ok
# kept: x/data.txt y/data.txt
# It leaves two files of one name in two folders.
for folder in "xy":
    os.mkdir("kit/artifacts/" + folder)
    with open("kit/artifacts/%s/data.txt" % folder, "w") as file:
        file.write(folder)
say("artifact", name="x/data.txt", bytes=1)
say("end", status="ok")
