//! The worker's own program, sent to the interpreter at its start.

/// The modules of these folders and names, each with its source.
macro_rules! modules {
    ($($folder:literal: $($name:literal)*;)*) => {
        &[$($((
            concat!($folder, ".", $name),
            include_str!(concat!("../../worker/", $folder, "/", $name, ".py")),
        )),*),*]
    };
}

/// The bootstrap, passed on the command line. It reads the rest from the first message.
pub(in crate::exec) const BOOT: &str = include_str!("../../worker/boot.py");

/// The modules. The bootstrap runs them in the order of their imports.
pub(in crate::exec) const MODULES: &[(&str, &str)] = modules! {
    "loop": "capture" "endings" "guard" "main" "scalar" "show" "step" "texts" "wire";
    "track": "codes" "identity" "mapping" "monitoring" "names" "reads";
    "values": "arrays" "bynames" "bytecode" "codeforms" "compat" "drawings" "dtypes" "field"
        "fingerprints" "funcs" "graft" "groups" "joint" "klass" "layouts" "levels" "library" "library_state"
        "models" "moments" "orders" "owners" "payloads" "pickles" "plain" "reductions" "rows" "settle" "shapes"
        "standins" "syntax" "trail" "trusted" "units" "variables" "views" "walk";
    "world": "ambient" "boundary" "calm" "channels" "clock" "effects" "events" "files" "handles" "imports"
        "inside" "left" "loading" "lookups" "mocks" "modules" "native" "options" "packages" "paths" "process"
        "scratch" "settings" "submodules" "traits" "tree" "watch";
};
