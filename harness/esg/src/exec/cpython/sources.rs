//! The worker's own program, sent to the interpreter at its start.

/// The modules of these names, each with its source.
macro_rules! modules {
    ($($name:literal)*) => {
        &[$(($name, include_str!(concat!("../../worker/", $name, ".py")))),*]
    };
}

/// The bootstrap, passed on the command line. It reads the rest from the first message.
pub(in crate::exec) const BOOT: &str = include_str!("../../worker/boot.py");

/// The modules. The bootstrap runs them in the order of their imports.
pub(in crate::exec) const MODULES: &[(&str, &str)] = modules! {
    "ambient" "boundary" "bynames" "calm" "capture" "channels" "clock" "codeforms" "codes" "endings" "events" "field" "files"
    "fingerprints" "funcs" "groups" "guard" "identity" "imports" "joint" "klass" "layouts" "levels" "library"
    "library_state" "loading" "main" "modules" "moments" "names" "owners" "packages" "paths" "payloads"
    "pickles" "plain" "process" "reads" "rows" "scalar" "scratch" "settings" "settle" "shapes"
    "show" "standins" "step" "submodules" "track_dict" "track_monitor" "trail" "traits" "tree"
    "units" "walk" "watch" "wire"
};
