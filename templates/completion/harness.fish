complete --command harness --no-files --arguments '(env _HARNESS_COMPLETE=(commandline -cp) harness)'
