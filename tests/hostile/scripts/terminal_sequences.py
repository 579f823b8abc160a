# status: failed
# error: in its results, a line is not JSON: \x1b]8;;http://x\x07
# It writes what a terminal acts upon where its results go.
os.write(1, b"\x1b]8;;http://x\x07click\xc2\x9b2J\xe2\x80\xae\n")
time.sleep(60)
