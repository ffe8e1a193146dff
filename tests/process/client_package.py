"""client_package.py: libmoonmq installed as a user would, and programs compiled against it."""
import os
import subprocess

from group import ROOT, dev_binary, moonmq_binary


class Package:
    """An installed client: `cmake --install --component client`, from the build that MOONMQ_BIN is of."""

    def __init__(self, directory):
        self.prefix = directory / "prefix"
        self.directory = directory
        for component in ("client", "lua"):
            subprocess.run(["cmake", "--install", str(moonmq_binary().parent), "--prefix", str(self.prefix),
                            "--component", component], check=True, capture_output=True)
        self.library_directory = next(self.prefix.rglob("moonmq.pc")).parent.parent

    def flags(self, *arguments):
        environment = {**os.environ, "PKG_CONFIG_PATH": str(self.library_directory / "pkgconfig")}
        done = subprocess.run(["pkg-config", *arguments, "moonmq"], check=True, capture_output=True, text=True,
                              env=environment)
        return done.stdout.split()

    def compile(self, source, static=False):
        """The path of the program."""
        program = self.directory / (source.stem + ("-static" if static else ""))
        if static:
            flags = [*self.flags("--cflags"), str(self.library_directory / "libmoonmq.a"),
                     *[flag for flag in self.flags("--static", "--libs") if flag != "-lmoonmq"]]
        else:
            flags = [*self.flags("--cflags", "--libs"), f"-Wl,-rpath,{self.library_directory}"]
        compile_with(source, program, flags)
        return program


def compile_with(source, program, flags):
    subprocess.run(["cc", "-std=c17", "-D_GNU_SOURCE", "-Wall", "-Wextra", "-Werror", "-g", "-O1", "-o", str(program),
                    str(source), *flags], check=True)


def compile_sanitized(source, directory):
    """Against the development build's library, with its sanitizers; None if that one is not built."""
    library = dev_binary().parent / "libmoonmq.so"
    if not library.exists():
        return None
    program = directory / (source.stem + "-sanitized")
    compile_with(source, program, ["-fsanitize=address,undefined", f"-I{ROOT}/include", str(library),
                                   f"-Wl,-rpath,{library.parent}"])
    return program
