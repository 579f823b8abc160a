"""What `harness doctor` looks at: one subject a file, each giving findings. The words are in templates/doctor.j2."""
