//! wireguard-go in the gateways' place, configured through its socket.

use std::ffi::OsString;
use std::fmt::Write as _;
use std::io::{Read as _, Write as _};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::time;

use snow::{Builder, Keypair};

use super::{TUNNEL, TUNNEL_MTU, WIRE, broken, exists, wait_for};
use crate::testbed::TestbedError;
use crate::testbed::namespaces::Namespace;
use crate::testbed::processes::Process;

const PORT: u16 = 51_820;

/// The program, if it is installed: on the path, or where `go install` puts it.
pub(super) fn program() -> Option<PathBuf> {
    let mut places: Vec<PathBuf> = std::env::var_os("PATH").iter().flat_map(std::env::split_paths).collect();
    if let Some(home) = std::env::var_os("HOME") {
        places.push(Path::new(&home).join("go/bin"));
    }
    let names = ["wireguard-go", "wireguard"];
    places.iter().flat_map(|place| names.map(|name| place.join(name))).find(|file| file.is_file())
}

/// Starts one on each side and joins them.
pub(super) fn start(
    namespaces: &[Namespace; 2],
    directory: &Path,
    processes: &mut Vec<Process>,
) -> Result<(), TestbedError> {
    let program = program().ok_or(TestbedError::Needs("wireguard-go"))?;
    let pair = || -> Result<Keypair, TestbedError> {
        let pattern =
            "Noise_NN_25519_ChaChaPoly_BLAKE2s".parse().map_err(|_| broken("the pattern is a constant"))?;
        Ok(Builder::new(pattern).generate_keypair().map_err(|_| broken("no random source"))?)
    };
    let keys = [pair()?, pair()?];
    for side in 0..2 {
        // Its control sockets share one directory, whatever the namespace.
        let device = format!("wg{}{side}", std::process::id());
        let arguments: [OsString; 2] = ["-f".into(), device.clone().into()];
        let log = directory.join(format!("{side}.log"));
        processes.push(namespaces[side].spawn(&program, &arguments, &log)?);
        let socket = Path::new("/var/run/wireguard").join(format!("{device}.sock"));
        wait_for("no control socket from wireguard-go", || exists(&socket), || "nothing".to_owned())?;
        let other = 1 - side;
        configure(
            &socket,
            &format!(
                "set=1\nprivate_key={}\nlisten_port={PORT}\npublic_key={}\nendpoint={}:{PORT}\nallowed_ip=0.0.0.0/0\n\n",
                hex(&keys[side].private),
                hex(&keys[other].public),
                WIRE[other],
            ),
        )?;
        namespaces[side].ip_batch(&format!(
            "address add {}/30 dev {device}\nlink set {device} mtu {TUNNEL_MTU} up\n",
            TUNNEL[side],
        ))?;
    }
    Ok(())
}

fn configure(socket: &Path, request: &str) -> Result<(), TestbedError> {
    let mut stream = UnixStream::connect(socket)?;
    stream.set_read_timeout(Some(time::Duration::from_secs(5)))?;
    stream.write_all(request.as_bytes())?;
    let mut answer = Vec::new();
    let mut byte = [0];
    while !answer.ends_with(b"\n\n") && stream.read(&mut byte)? == 1 {
        answer.push(byte[0]);
    }
    if answer.starts_with(b"errno=0\n") {
        return Ok(());
    }
    Err(broken(&format!("wireguard-go says {}", String::from_utf8_lossy(&answer).trim())).into())
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}
