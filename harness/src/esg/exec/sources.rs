//! The worker's own program, which goes to the interpreter when it starts.

/// The modules of these names, each with its source.
macro_rules! modules {
    ($($name:literal)*) => {
        &[$(($name, include_str!(concat!("../worker/", $name, ".py")))),*]
    };
}

/// The bootstrap, passed on the command line: it takes the rest from the first message.
pub(super) const BOOT: &str = include_str!("../worker/boot.py");

/// The modules. The bootstrap runs them in the order in which they import each other.
pub(super) const MODULES: &[(&str, &str)] = modules! {
    "bynames" "capture" "channels" "clock" "codeforms" "codes" "endings" "events" "files"
    "funcs" "groups" "guard" "klass" "layouts" "library" "library_state" "loading" "main"
    "modules" "names" "packages" "paths" "payloads" "pickles" "prints" "process" "reads"
    "scratch" "settle" "shapes" "show" "standins" "step" "track_dict" "track_monitor" "traits"
    "tree" "units" "walk" "watch" "wire"
};

#[cfg(test)]
mod tests {
    #[test]
    fn every_file_of_the_worker_is_shipped() {
        let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/src/esg/worker");
        let files = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name());
        let mut files: Vec<_> = files.map(|name| name.into_string().unwrap()).collect();
        files.retain(|name| name.ends_with(".py") && name != "boot.py");
        files.sort();
        let shipped: Vec<_> = super::MODULES.iter().map(|(name, _)| format!("{name}.py")).collect();
        assert_eq!(shipped, files);
    }
}
