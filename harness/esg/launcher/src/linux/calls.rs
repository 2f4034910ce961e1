//! System calls by what they are for. Those that no list names do not exist for the program.
#![allow(clippy::wildcard_imports)]
use libc::*;

/// What programs need, on every processor.
pub(super) const COMMON: &[c_long] = &[
    // Memory.
    SYS_brk, SYS_madvise, SYS_mincore, SYS_mlock, SYS_mlock2, SYS_mmap, SYS_mprotect, SYS_mremap,
    SYS_msync, SYS_munlock, SYS_munmap, SYS_get_mempolicy, SYS_membarrier,
    // Files, by name and by number. Which ones is decided elsewhere.
    SYS_close, SYS_close_range, SYS_copy_file_range, SYS_dup, SYS_dup3, SYS_fadvise64, SYS_fallocate,
    SYS_fcntl, SYS_fdatasync, SYS_flock, SYS_fstat, SYS_fsync, SYS_ftruncate, SYS_getdents64,
    SYS_ioctl, SYS_lseek, SYS_pipe2, SYS_pread64, SYS_preadv, SYS_preadv2, SYS_pwrite64, SYS_pwritev,
    SYS_pwritev2, SYS_read, SYS_readahead, SYS_readv, SYS_sendfile, SYS_splice, SYS_sync_file_range,
    SYS_tee, SYS_vmsplice, SYS_write, SYS_writev,
    SYS_chdir, SYS_faccessat, SYS_faccessat2, SYS_fchdir, SYS_fgetxattr, SYS_flistxattr, SYS_fstatfs,
    SYS_getcwd, SYS_getxattr, SYS_lgetxattr, SYS_linkat, SYS_listxattr, SYS_llistxattr, SYS_mkdirat,
    SYS_newfstatat, SYS_openat, SYS_openat2, SYS_readlinkat, SYS_renameat2, SYS_statfs, SYS_statx,
    SYS_symlinkat, SYS_truncate, SYS_umask, SYS_unlinkat,
    // Waiting.
    SYS_clock_getres, SYS_clock_gettime, SYS_clock_nanosleep, SYS_epoll_create1, SYS_epoll_ctl,
    SYS_epoll_pwait, SYS_epoll_pwait2, SYS_eventfd2, SYS_futex, SYS_futex_waitv, SYS_getitimer,
    SYS_gettimeofday, SYS_nanosleep, SYS_ppoll, SYS_pselect6, SYS_restart_syscall, SYS_setitimer,
    SYS_timer_create, SYS_timer_delete, SYS_timer_getoverrun, SYS_timer_gettime, SYS_timer_settime,
    SYS_timerfd_create, SYS_timerfd_gettime, SYS_timerfd_settime, SYS_times,
    // Signals to itself.
    SYS_kill, SYS_rt_sigaction, SYS_rt_sigpending, SYS_rt_sigprocmask, SYS_rt_sigreturn,
    SYS_rt_sigsuspend, SYS_rt_sigtimedwait, SYS_sigaltstack, SYS_signalfd4, SYS_tgkill,
    // What it is, and its threads.
    SYS_capget, SYS_clone, SYS_execve, SYS_exit, SYS_exit_group, SYS_get_robust_list, SYS_getcpu,
    SYS_getegid, SYS_geteuid, SYS_getgid, SYS_getgroups, SYS_getpgid, SYS_getpid, SYS_getppid,
    SYS_getpriority, SYS_getrandom, SYS_getresgid, SYS_getresuid, SYS_getrlimit, SYS_getrusage,
    SYS_getsid, SYS_gettid, SYS_getuid, SYS_ioprio_get, SYS_prctl, SYS_prlimit64, SYS_rseq,
    SYS_sched_get_priority_max, SYS_sched_get_priority_min, SYS_sched_getaffinity, SYS_sched_getattr,
    SYS_sched_getparam, SYS_sched_getscheduler, SYS_sched_setaffinity, SYS_sched_setattr,
    SYS_sched_setparam, SYS_sched_setscheduler, SYS_sched_yield, SYS_set_robust_list,
    SYS_set_tid_address, SYS_setpriority, SYS_setrlimit, SYS_sysinfo, SYS_uname, SYS_wait4,
    SYS_waitid,
];

/// Older forms of the above.
#[cfg(target_arch = "x86_64")]
pub(super) const OLDER: &[c_long] = &[
    SYS_access, SYS_alarm, SYS_arch_prctl, SYS_creat, SYS_dup2, SYS_epoll_create, SYS_epoll_wait,
    SYS_eventfd, SYS_getdents, SYS_getpgrp, SYS_link, SYS_lstat, SYS_mkdir, SYS_open, SYS_pause,
    SYS_pipe, SYS_poll, SYS_readlink, SYS_rename, SYS_renameat, SYS_rmdir, SYS_select, SYS_signalfd,
    SYS_stat, SYS_symlink, SYS_time, SYS_unlink,
];
#[cfg(target_arch = "aarch64")]
pub(super) const OLDER: &[c_long] = &[SYS_renameat];

/// Those that change attributes of files.
pub(super) const ATTRIBUTES: &[c_long] = &[
    SYS_fchmod, SYS_fchmodat, SYS_fchown, SYS_fchownat, SYS_fremovexattr,
    SYS_fsetxattr, SYS_lremovexattr, SYS_lsetxattr, SYS_removexattr, SYS_setxattr, SYS_utimensat,
];
#[cfg(target_arch = "x86_64")]
pub(super) const OLDER_ATTRIBUTES: &[c_long] =
    &[SYS_chmod, SYS_chown, SYS_fchmodat2, SYS_futimesat, SYS_lchown, SYS_utime, SYS_utimes];
#[cfg(target_arch = "aarch64")]
pub(super) const OLDER_ATTRIBUTES: &[c_long] = &[];

/// Sockets. A pair of connected ones is no network.
pub(super) const SOCKETS: &[c_long] = &[
    SYS_accept, SYS_accept4, SYS_bind, SYS_connect, SYS_listen, SYS_recvmmsg, SYS_recvmsg,
    SYS_sendmmsg, SYS_sendmsg, SYS_socket,
];
pub(super) const PAIRS: &[c_long] = &[
    SYS_getpeername, SYS_getsockname, SYS_getsockopt, SYS_recvfrom, SYS_sendto, SYS_setsockopt,
    SYS_shutdown, SYS_socketpair,
];

/// What starts processes, acts on others, and shares memory with them.
pub(super) const PROCESSES: &[c_long] = &[
    SYS_clone3, SYS_execveat, SYS_ioprio_set, SYS_memfd_create, SYS_migrate_pages, SYS_move_pages,
    SYS_mq_getsetattr, SYS_mq_notify, SYS_mq_open, SYS_mq_timedreceive, SYS_mq_timedsend,
    SYS_mq_unlink, SYS_msgctl, SYS_msgget, SYS_msgrcv, SYS_msgsnd, SYS_pidfd_open,
    SYS_pidfd_send_signal, SYS_process_madvise, SYS_process_mrelease, SYS_rt_sigqueueinfo,
    SYS_rt_tgsigqueueinfo, SYS_semctl, SYS_semget, SYS_semop, SYS_semtimedop, SYS_setpgid,
    SYS_setsid, SYS_shmat, SYS_shmctl, SYS_shmdt, SYS_shmget, SYS_tkill,
];
#[cfg(target_arch = "x86_64")]
pub(super) const OLDER_PROCESSES: &[c_long] = &[SYS_fork, SYS_vfork];
#[cfg(target_arch = "aarch64")]
pub(super) const OLDER_PROCESSES: &[c_long] = &[];

/// What no program of a user needs by accident: an attempt ends the process.
pub(super) const NEVER: &[c_long] = &[
    SYS_acct, SYS_add_key, SYS_adjtimex, SYS_bpf, SYS_chroot, SYS_clock_adjtime, SYS_clock_settime,
    SYS_delete_module, SYS_fanotify_init, SYS_finit_module, SYS_fsconfig, SYS_fsmount, SYS_fsopen,
    SYS_fspick, SYS_init_module, SYS_io_uring_enter, SYS_io_uring_register, SYS_io_uring_setup,
    SYS_kcmp, SYS_kexec_load, SYS_keyctl, SYS_mount, SYS_mount_setattr, SYS_move_mount,
    SYS_name_to_handle_at, SYS_open_by_handle_at, SYS_open_tree, SYS_perf_event_open, SYS_pidfd_getfd,
    SYS_pivot_root, SYS_process_vm_readv, SYS_process_vm_writev, SYS_ptrace, SYS_quotactl, SYS_reboot,
    SYS_request_key, SYS_setdomainname, SYS_sethostname, SYS_setns, SYS_settimeofday, SYS_swapoff,
    SYS_swapon, SYS_syslog, SYS_umount2, SYS_unshare, SYS_userfaultfd, SYS_vhangup,
];
#[cfg(target_arch = "x86_64")]
pub(super) const OLDER_NEVER: &[c_long] =
    &[SYS_ioperm, SYS_iopl, SYS_kexec_file_load, SYS_modify_ldt, SYS_uselib];
#[cfg(target_arch = "aarch64")]
pub(super) const OLDER_NEVER: &[c_long] = &[];
