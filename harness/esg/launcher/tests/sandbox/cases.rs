//! The attacks: what is attempted, which layers stop it, and how the step then ends.
use harness_esg_launcher::Layer::{self, Files, Network, Processes, System, User};

/// How the step of an attack ends in the sandbox.
#[derive(Clone, Copy, Debug)]
pub(super) enum Stopped {
    /// With an exception of this type.
    Raised(&'static str),
    /// The worker is ended by the sandbox.
    Denied,
}

use Stopped::{Denied, Raised};

/// An attack. Its source prints `through` if it succeeds.
#[derive(Clone, Copy, Debug)]
pub(super) struct Case {
    pub(super) name: &'static str,
    /// The layers without which it succeeds.
    pub(super) off: &'static [Layer],
    pub(super) stopped: Stopped,
    pub(super) source: &'static str,
}

const fn case(
    name: &'static str,
    off: &'static [Layer],
    stopped: Stopped,
    source: &'static str,
) -> Case {
    Case { name, off, stopped, source }
}

/// Comes before each attack. `OUT` is a directory outside of scratch, with a file `secret` that
/// everyone may write to, `PORT` is one at which a server listens, and `HOST` is a process of the user who
/// started the worker.
pub(super) const PRELUDE: &str = "import ctypes, os, socket, sys
from fcntl import fcntl, F_GETOWN, F_SETOWN
NUMBERS = {
    'ptrace': (101, 117), 'kcmp': (312, 272), 'process_vm_readv': (310, 270), 'unshare': (272, 97),
    'mount': (165, 40), 'io_uring_setup': (425, 425), 'keyctl': (250, 219), 'userfaultfd': (323, 282),
    'name_to_handle_at': (303, 264), 'shmget': (29, 194), 'memfd_create': (319, 279),
    'pidfd_open': (434, 434), 'add_key': (248, 217), 'vfork': (58, 1000),
}
libc = ctypes.CDLL(None, use_errno=True)
def call(name, *args):
    args = [ctypes.c_long(arg) if isinstance(arg, int) else arg for arg in args]
    result = libc.syscall(NUMBERS[name][os.uname().machine == 'aarch64'], *args)
    if result < 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
    return result
";

const DENIED: Stopped = Raised("PermissionError");
/// What a read-only mount answers, and a rename into another directory.
const FIXED: Stopped = Raised("OSError");

/// Another user may not act on the host's process, either.
const ACTS: &[Layer] = &[Processes, User];

pub(super) const CASES: &[Case] = &[
    // The network.
    case("tcp", &[Network], DENIED, "socket.create_connection(('127.0.0.1', PORT)).close()"),
    case(
        "udp",
        &[Network],
        DENIED,
        "socket.socket(socket.AF_INET, socket.SOCK_DGRAM)\
        .sendto(b'x', ('127.0.0.1', PORT))",
    ),
    case("ipv6", &[Network], DENIED, "socket.socket(socket.AF_INET6)"),
    case("a server", &[Network], DENIED, "socket.create_server(('127.0.0.1', 0))"),
    case("netlink", &[Network], DENIED, "socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, 0)"),
    case(
        "every family",
        &[Network],
        DENIED,
        "made = 0
for family in range(1, 46):
    for kind in (socket.SOCK_STREAM, socket.SOCK_DGRAM, socket.SOCK_RAW, socket.SOCK_SEQPACKET):
        try:
            socket.socket(family, kind).close()
            made += 1
        except OSError as error:
            refused = error
if not made:
    raise refused",
    ),
    case(
        "a socket of another process",
        &[Network],
        DENIED,
        "socket.socket(socket.AF_UNIX).connect(OUT + '/socket')",
    ),
    case(
        "a datagram to another process",
        &[Network],
        DENIED,
        "socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)[0].sendto(b'x', OUT + '/datagrams')",
    ),
    case("an abstract socket", &[Network], DENIED, "socket.socket(socket.AF_UNIX).bind('\\0esg')"),
    // Files.
    case("read a file", &[Files], DENIED, "assert open(OUT + '/secret').read()"),
    case("read the users", &[Files], DENIED, "assert open('/etc/passwd').read()"),
    case("list the root", &[Files], DENIED, "assert os.listdir('/')"),
    case("list processes", &[Files], DENIED, "assert os.listdir('/proc')"),
    case(
        "read through a link",
        &[Files],
        DENIED,
        "if not os.path.lexists('link'):
    os.symlink(OUT + '/secret', 'link')
assert open('link').read()",
    ),
    case(
        "read through /proc",
        &[Files],
        DENIED,
        "open('/proc/self/root' + OUT + '/secret').read()",
    ),
    case(
        "read through a path descriptor",
        &[Files],
        DENIED,
        "fd = os.open(OUT + '/secret', os.O_PATH)\nopen('/proc/self/fd/%d' % fd).read()",
    ),
    case("read above scratch", &[Files], DENIED, "os.listdir(os.path.dirname(os.getcwd()))"),
    case(
        "the host's environment",
        &[Files, Network, Processes, User],
        DENIED,
        "assert open('/proc/%d/environ' % HOST, 'rb').read()",
    ),
    case(
        "the host's descriptors",
        &[Files, Network, Processes, User],
        DENIED,
        "assert os.listdir('/proc/%d/fd' % HOST)",
    ),
    case(
        "the host's memory",
        &[Files, Network, Processes, User],
        DENIED,
        "assert open('/proc/%d/maps' % HOST).read()",
    ),
    case("write a file", &[Files], FIXED, "open(OUT + '/secret', 'r+').write('x')"),
    case("truncate a file", &[Files], FIXED, "os.truncate(OUT + '/empty', 0)"),
    case(
        "make a file",
        &[Files],
        FIXED,
        "open(OUT + '/new', 'w').close()\nos.remove(OUT + '/new')",
    ),
    case("make a directory", &[Files], FIXED, "os.mkdir(OUT + '/new')\nos.rmdir(OUT + '/new')"),
    case("make a link", &[Files], FIXED, "os.symlink('x', OUT + '/new')\nos.remove(OUT + '/new')"),
    case(
        "remove a file",
        &[Files],
        FIXED,
        "os.remove(OUT + '/empty')\nopen(OUT + '/empty', 'w').close()",
    ),
    case(
        "move a file away",
        &[Files],
        FIXED,
        "os.rename(OUT + '/empty', 'taken')\nos.rename('taken', OUT + '/empty')",
    ),
    case("link a file", &[Files], FIXED, "os.link(OUT + '/secret', 'hard')\nos.remove('hard')"),
    case(
        "write through a link",
        &[Files],
        FIXED,
        "if not os.path.lexists('link'):
    os.symlink(OUT + '/secret', 'link')
open('link', 'r+').write('x')",
    ),
    case("touch a file", &[Files], FIXED, "os.utime(OUT + '/secret')"),
    case("change a mode", &[Files, User], FIXED, "os.chmod(OUT + '/secret', 0o666)"),
    case("change an attribute", &[Files], FIXED, "os.setxattr(OUT + '/secret', 'user.x', b'y')"),
    case(
        "memory shared by name",
        &[Files, Processes],
        FIXED,
        "from multiprocessing.shared_memory import SharedMemory
made = SharedMemory(create=True, size=1)
made.close(); made.unlink()",
    ),
    case("a device", &[Files], DENIED, "open('/dev/full', 'rb').close()"),
    case(
        "another program",
        &[Files],
        DENIED,
        "if True:\n    print('through', flush=True)\n    os.execv('/bin/true', ['true'])",
    ),
    // Processes.
    case(
        "fork",
        &[Processes],
        DENIED,
        "for _ in range(2):
    child = os.fork()
    if not child:
        os._exit(0)
    os.waitpid(child, 0)",
    ),
    case(
        "a program",
        &[Processes, Files],
        DENIED,
        "import subprocess\nassert subprocess.run(['/bin/true']).returncode == 0",
    ),
    case(
        "os.system",
        &[Processes, Files],
        Raised("AssertionError"),
        "assert os.system('true') == 0",
    ),
    case(
        "many threads",
        &[Processes],
        Raised("RuntimeError"),
        "import threading
done = threading.Event()
threads = []
try:
    for _ in range(40):
        one = threading.Thread(target=done.wait)
        one.start()
        threads.append(one)
finally:
    done.set()
    for one in threads: one.join()",
    ),
    case("signal the host", ACTS, DENIED, "os.kill(HOST, 0)"),
    case(
        "signal everyone",
        &[Processes],
        DENIED,
        "import signal
signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGWINCH])
os.killpg(0, signal.SIGWINCH)",
    ),
    case(
        "signal through a descriptor",
        ACTS,
        DENIED,
        "there, here = os.pipe()\nfcntl(there, F_SETOWN, HOST)\nassert fcntl(there, F_GETOWN) == HOST",
    ),
    case("hold the host's process", &[Processes], DENIED, "os.close(call('pidfd_open', HOST, 0))"),
    case(
        "the host's priority",
        ACTS,
        DENIED,
        "os.setpriority(os.PRIO_PROCESS, HOST, os.getpriority(os.PRIO_PROCESS, HOST))",
    ),
    case(
        "the host's processors",
        ACTS,
        DENIED,
        "os.sched_setaffinity(HOST, os.sched_getaffinity(HOST))",
    ),
    case(
        "the host's limits",
        ACTS,
        DENIED,
        "import resource\nresource.prlimit(HOST, resource.RLIMIT_CORE)",
    ),
    case("shared memory", &[Processes], DENIED, "call('shmget', 0, 4096, 0o1600)"),
    case("a file in memory", &[Processes], DENIED, "os.close(call('memfd_create', b'x', 0))"),
    // Rare system calls.
    case("trace", &[System], Denied, "call('ptrace', 0, 0, 0, 0)"),
    case("compare processes", &[System], Denied, "call('kcmp', os.getpid(), os.getpid(), 1, 0, 0)"),
    case(
        "read memory",
        &[System],
        Denied,
        "import struct
text = ctypes.create_string_buffer(b'x')
part = ctypes.create_string_buffer(struct.pack('QQ', ctypes.addressof(text), 1))
call('process_vm_readv', os.getpid(), part, 1, part, 1, 0)",
    ),
    case("namespaces", &[System], Denied, "call('unshare', 0x10000000)"),
    case(
        "mount",
        &[System, Files, Network, Processes],
        Denied,
        "call('unshare', 0x10020000)
call('mount', b'none', os.getcwd().encode(), b'tmpfs', 0, None)",
    ),
    case(
        "bind",
        &[System, Files, Network, Processes],
        Denied,
        "call('unshare', 0x10020000)
call('mount', b'/etc', os.getcwd().encode(), None, 4096 | 16384, None)",
    ),
    case(
        "io_uring",
        &[System],
        Denied,
        "os.close(call('io_uring_setup', 1, ctypes.create_string_buffer(120)))",
    ),
    case("keys", &[System], Denied, "call('keyctl', 0, -3, 1)"),
    case("add a key", &[System], Denied, "call('add_key', b'user', b'x', b'y', 1, -2)"),
    case("page faults", &[System], Denied, "os.close(call('userfaultfd', 1))"),
    case(
        "handles of files",
        &[System],
        Denied,
        "call('name_to_handle_at', -100, b'/', \
        ctypes.create_string_buffer(b'\\x80' + bytes(200)), ctypes.byref(ctypes.c_int()), 0)",
    ),
];
