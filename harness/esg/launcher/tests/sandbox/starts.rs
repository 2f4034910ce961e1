use harness_esg::{CPython, Ending, Executor, Isolation, StartError};
use harness_esg_launcher::{Launcher, Layer, Sandbox};

use super::{as_each, run};

#[test]
fn this_machine_has_every_layer() {
    as_each(|host| {
        let layers = host.sandbox().layers().unwrap();
        assert!(layers.missing().is_empty(), "{}:\n{layers}", host.name);
        println!("{}:\n{layers}", host.name);
        assert_eq!(layers.iter().count(), Layer::ALL.len());
    });
}

#[test]
fn untrusted_code_runs_in_the_sandbox() {
    as_each(|host| {
        let mut python = host.builder().start().unwrap();
        assert_eq!(python.caps().isolation, Some(Isolation::Kernel));
        assert!(python.fingerprint().contains("isolation kernel"));
        let ran = run(&mut python, "open('a', 'w').write('b')\nprint(open('a').read())");
        assert_eq!((ran.ending, &*ran.stdout.bytes), (Ending::Ok, &b"b\n"[..]), "{}", host.name);
    });
}

#[test]
fn a_launcher_that_lacks_a_layer_is_refused() {
    as_each(|host| {
        let weak = host.sandbox().without(Layer::Network);
        let error = CPython::at(&host.python).launcher(weak).start().unwrap_err();
        let StartError::Exposed { missing } = &error else { panic!("{error}") };
        assert_eq!(missing.iter().map(|one| one.layer).collect::<Vec<_>>(), [Layer::Network]);
        let none = CPython::at(&host.python).launcher(Sandbox::at("/bin/true")).start();
        assert!(matches!(none.unwrap_err(), StartError::Launcher { .. }));
    });
}
