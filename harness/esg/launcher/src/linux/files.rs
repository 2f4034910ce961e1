//! The rules of landlock.
use std::fs::File;
use std::io::{self, Read as _, Seek as _, SeekFrom};
use std::path::{Path, PathBuf};

use landlock::{
    ABI, Access as _, AccessFs, AccessNet, CompatLevel, Compatible as _, LandlockStatus, Ruleset,
    RulesetAttr as _, RulesetCreatedAttr as _, RulesetStatus, Scope, path_beneath_rules,
};

use crate::layer::Layer;
use crate::spec::Task;

/// What programs read of the system: libraries, locales, time zones, fonts.
const SYSTEM: &[&str] = &[
    "/usr/lib",
    "/usr/lib32",
    "/usr/lib64",
    "/usr/local/lib",
    "/usr/share",
    "/lib",
    "/lib64",
    "/nix/store",
    "/etc/fonts",
    "/etc/ld.so.cache",
    "/etc/localtime",
    "/etc/mime.types",
    "/etc/ssl/openssl.cnf",
    "/dev/null",
    "/dev/random",
    "/dev/urandom",
    "/dev/zero",
    "/proc/cpuinfo",
    "/proc/meminfo",
    "/proc/self",
    "/sys/devices/system/cpu",
];

/// The version whose rights cover every write to a file's content.
const NEEDED: ABI = ABI::V3;

/// What landlock restricts, as its name and version.
#[derive(Clone, Debug, Default)]
pub(super) struct Landlock {
    /// For files.
    pub(super) files: Option<String>,
    /// For the network and signals, which came later.
    pub(super) later: Option<String>,
}

/// Restricts the process.
///
/// # Errors
/// If files are to be protected, and the kernel does not.
pub(super) fn restrict(
    task: &Task,
    program: Option<&PathBuf>,
    on: impl Fn(Layer) -> bool,
) -> super::Result<Landlock> {
    if ![Layer::Files, Layer::Network, Layer::Processes].into_iter().any(&on) {
        return Ok(Landlock::default());
    }
    let mut rules = Ruleset::default();
    if on(Layer::Files) {
        rules = rules
            .set_compatibility(CompatLevel::HardRequirement)
            .handle_access(AccessFs::from_all(NEEDED))
            .map_err(|_| "landlock of Linux 6.2 or newer is not enabled")?
            .set_compatibility(CompatLevel::BestEffort)
            .handle_access(AccessFs::IoctlDev)?;
    }
    if on(Layer::Network) {
        rules = rules.handle_access(AccessNet::from_all(ABI::V4))?;
        rules = rules.scope(Scope::AbstractUnixSocket)?;
    }
    if on(Layer::Processes) {
        rules = rules.scope(Scope::Signal)?;
    }
    let mut rules = rules.create()?.set_compatibility(CompatLevel::BestEffort);
    if on(Layer::Files) {
        let read = AccessFs::ReadFile | AccessFs::ReadDir;
        let write = AccessFs::from_all(NEEDED)
            ^ (AccessFs::Execute | AccessFs::MakeBlock | AccessFs::MakeChar)
            ^ (AccessFs::MakeFifo | AccessFs::MakeSock);
        let loader = program.and_then(|path| loader(path).ok().flatten());
        let programs: Vec<&Path> =
            program.map(PathBuf::as_path).into_iter().chain(loader.as_deref()).collect();
        rules = rules
            .add_rules(path_beneath_rules(SYSTEM, read))?
            .add_rules(path_beneath_rules(&task.read, read))?
            .add_rules(path_beneath_rules(&task.write, write))?
            .add_rules(path_beneath_rules(["/dev/null"], AccessFs::ReadFile | AccessFs::WriteFile))?
            .add_rules(path_beneath_rules(programs, AccessFs::ReadFile | AccessFs::Execute))?;
    }
    let status = rules.restrict_self()?;
    let version = match status.landlock {
        LandlockStatus::Available { effective_abi, .. } => effective_abi as i32,
        _ => 0,
    };
    let enforced = status.ruleset != RulesetStatus::NotEnforced;
    let files = enforced.then(|| format!("landlock {version}"));
    let later = files.clone().filter(|_| version >= ABI::V6 as i32);
    Ok(Landlock { files, later })
}

/// The program that loads the libraries of an executable, which the kernel executes, too.
fn loader(program: &Path) -> io::Result<Option<PathBuf>> {
    /// The kind of the entry with its path.
    const INTERPRETER: u32 = 3;
    let mut file = File::open(program)?;
    let mut head = [0; 64];
    file.read_exact(&mut head)?;
    // Of 64 bits, and little-endian.
    if head[..6] != *b"\x7fELF\x02\x01" {
        return Ok(None);
    }
    let (table, size, count) = (long(&head[32..]), short(&head[54..]), short(&head[56..]));
    let mut entry = [0; 56];
    for index in 0..u64::from(count) {
        file.seek(SeekFrom::Start(table + index * u64::from(size)))?;
        file.read_exact(&mut entry)?;
        if entry[..4] == INTERPRETER.to_le_bytes() {
            file.seek(SeekFrom::Start(long(&entry[8..])))?;
            let mut path = vec![0; usize::try_from(long(&entry[32..])).unwrap_or(0).min(4096)];
            file.read_exact(&mut path)?;
            path.pop();
            return Ok(String::from_utf8(path).ok().map(PathBuf::from));
        }
    }
    Ok(None)
}

fn long(bytes: &[u8]) -> u64 {
    bytes.first_chunk().map_or(0, |bytes| u64::from_le_bytes(*bytes))
}

fn short(bytes: &[u8]) -> u16 {
    bytes.first_chunk().map_or(0, |bytes| u16::from_le_bytes(*bytes))
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::loader;

    #[test]
    fn the_loader_of_a_program_is_found() {
        let found = loader(&std::env::current_exe().unwrap_or_default());
        let found = found.ok().flatten().map(|path| path.exists() && path.starts_with("/lib64"));
        if cfg!(all(target_arch = "x86_64", target_env = "gnu")) {
            assert_eq!(found, Some(true));
        }
        assert!(matches!(loader(Path::new("/proc/self/status")), Ok(None)));
    }
}
