"""`python -m agentmem`: the command `agentmem`, where it is not installed, as in the image."""

from agentmem.cli.main import run

if __name__ == "__main__":
    run()
