//! The launcher as a program of its own, for programs that do not call `enter`.

fn main() -> std::process::ExitCode {
    harness_esg_launcher::enter();
    eprintln!("this program is started by others, to run a worker inside a sandbox");
    std::process::ExitCode::from(2)
}
