//! Reads what the bootstrap says about an exception.

use std::io::Read;
use std::path::Path;

use harness::esg::diagnosis::Fault;

const MAX_REPORT: u64 = 256 * 1024;

/// The report, unless it is missing, too large, no plain file or no report:
/// the script could have put anything there.
pub(super) fn read(path: &Path) -> Option<Fault> {
    let mut options = std::fs::OpenOptions::new();
    options.read(true);
    #[cfg(unix)]
    {
        use rustix::fs::OFlags;
        use std::os::unix::fs::OpenOptionsExt;

        // Neither follow a link out of the scratch directory nor wait for a
        // writer to a pipe.
        let flags = OFlags::NOFOLLOW | OFlags::NONBLOCK;
        options.custom_flags(i32::try_from(flags.bits()).ok()?);
    }
    let file = options.open(path).ok()?;
    let about = file.metadata().ok()?;
    if !about.is_file() || about.len() > MAX_REPORT {
        return None;
    }
    let mut text = String::new();
    file.take(MAX_REPORT).read_to_string(&mut text).ok()?;
    serde_json::from_str(&text).ok()
}
