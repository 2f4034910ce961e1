//! Applies the layers to the calling process, in this order: what needs rights first.
#[rustfmt::skip]
mod calls;
mod files;
mod filters;
mod mounts;
mod namespaces;
mod table;
mod user;

use std::error::Error;
use std::ffi::OsString;
use std::fs;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{self, Command};

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

use crate::layer::{Layer, Layers, Status};
use crate::spec::Task;

type Result<T> = std::result::Result<T, Box<dyn Error>>;

/// Becomes the program in the sandbox, or prints the layers. Returns why it failed to.
pub(crate) fn run(task: &Task, mut args: impl Iterator<Item = OsString>) -> String {
    let program = args.next().map(PathBuf::from);
    close_files();
    let layers = apply(task, program.as_ref());
    if task.report {
        return match serde_json::to_string(&layers) {
            Ok(json) => {
                println!("{json}");
                process::exit(0);
            }
            Err(error) => error.to_string(),
        };
    }
    let missing = layers.iter().filter(|status| status.missing.is_some());
    let missing: Vec<_> = missing.map(ToString::to_string).collect();
    if !missing.is_empty() {
        return format!("the sandbox is not whole: {}", missing.join("; "));
    }
    let Some(program) = program else { return "no program to launch".to_owned() };
    let error = Command::new(&program).args(args).exec();
    format!("failed to start {}: {error}", program.display())
}

/// Closes what the process inherited besides standard input, output and error.
fn close_files() {
    let Ok(open) = fs::read_dir("/proc/self/fd") else { return };
    let numbers = open.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse::<i32>().ok());
    for number in numbers.filter(|number| *number > 2).collect::<Vec<_>>() {
        // The number of the listing itself is closed already.
        nix::unistd::close(number).ok();
    }
}

/// Applies the layers, as far as the system has them.
fn apply(task: &Task, program: Option<&PathBuf>) -> Layers {
    let on = |layer| task.layers.contains(&layer);
    let root = rustix::process::geteuid().is_root();
    // A missing namespace is one mechanism less.
    let with = |layer| task.namespaces && on(layer);
    let spaces =
        namespaces::enter(root, with(Layer::Network), with(Layer::Processes), with(Layer::Files));
    let fixed = on(Layer::Files) && spaces.mounts && mounts::fix(&task.write).is_ok();
    let user = match root && on(Layer::User) {
        true => user::drop(task.read.iter().chain(&task.write).chain(program), &task.write),
        false => Ok("not root".to_owned()),
    };
    if on(Layer::Processes) && (spaces.users || (root && on(Layer::User))) {
        // Otherwise all processes of the user count.
        limit(Resource::Nproc, task.threads);
    }
    limit(Resource::Core, 0);
    let landlock = files::restrict(task, program, on);
    // Another user cannot change the attributes of files that are not its own.
    let safe = fixed || (root && on(Layer::User) && user.is_ok());
    let seccomp = filters::restrict(on, !safe).map(|()| "seccomp".to_owned());
    let later = landlock.as_ref().ok().and_then(|found| found.later.clone());
    let space = |so: bool, kind| so.then(|| format!("{kind} namespace"));
    let found = task.layers.iter().map(|layer| {
        let (rules, space) = match layer {
            Layer::Files => match &landlock {
                Ok(found) => (found.files.clone(), space(fixed, "mount")),
                Err(error) => return missing(*layer, error.as_ref()),
            },
            Layer::Network => (later.clone(), space(spaces.network, "network")),
            Layer::Processes => (later.clone(), space(spaces.ipc, "ipc")),
            Layer::System => (None, None),
            Layer::User => match &user {
                Ok(by) => return Status::new(*layer, vec![by.clone()], None),
                Err(error) => return missing(*layer, error.as_ref()),
            },
        };
        match &seccomp {
            Ok(filters) => {
                let by = rules.into_iter().chain([filters.clone()]).chain(space);
                Status::new(*layer, by.collect(), None)
            }
            Err(error) => missing(*layer, error.as_ref()),
        }
    });
    Layers::new(found.collect())
}

fn missing(layer: Layer, error: &dyn Error) -> Status {
    Status::new(layer, Vec::new(), Some(error.to_string()))
}

/// Lowers a limit.
fn limit(resource: Resource, to: u64) {
    let to = getrlimit(resource).maximum.map_or(to, |most| most.min(to));
    setrlimit(resource, Rlimit { current: Some(to), maximum: Some(to) }).ok();
}
