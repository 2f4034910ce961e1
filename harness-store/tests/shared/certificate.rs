//! A certificate that a server has signed itself.

use std::path::Path;
use std::process::Command;

/// Makes one for the name `localhost`, as the user that `openssl` is started as.
pub(crate) fn make(mut openssl: Command, key: &Path, certificate: &Path) {
    let made = openssl
        .args(["req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1"])
        .args(["-nodes", "-days", "2", "-subj", "/CN=localhost"])
        .args(["-addext", "subjectAltName=DNS:localhost"])
        .args(["-addext", "basicConstraints=critical,CA:FALSE"])
        .arg("-keyout")
        .arg(key)
        .arg("-out")
        .arg(certificate)
        .output()
        .expect("`openssl` makes the certificate");
    assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
}
