//! What a service manager wants to know: `sd_notify(3)`, without its library.

use std::env;
use std::ffi::OsStr;
use std::io;
use std::os::linux::net::SocketAddrExt as _;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::net::{SocketAddr, UnixDatagram};

/// Tells the manager that started us, if one did, that we are ready.
///
/// # Errors
/// What the kernel says.
pub fn notify_ready() -> io::Result<()> {
    env::var_os("NOTIFY_SOCKET").map_or(Ok(()), |socket| notify(&socket, b"READY=1"))
}

fn notify(socket: &OsStr, state: &[u8]) -> io::Result<()> {
    let address = match socket.as_bytes().strip_prefix(b"@") {
        Some(name) => SocketAddr::from_abstract_name(name)?,
        None => SocketAddr::from_pathname(socket)?,
    };
    UnixDatagram::unbound()?.send_to_addr(state, &address).map(|_| ())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_kinds_of_sockets_are_told() {
        let name = format!("longhaul-notify-{}", std::process::id());
        let file = env::temp_dir().join(&name);
        let sockets = [
            (SocketAddr::from_abstract_name(&name).unwrap(), format!("@{name}").into()),
            (SocketAddr::from_pathname(&file).unwrap(), file.clone().into_os_string()),
        ];
        for (address, variable) in sockets {
            let manager = UnixDatagram::bind_addr(&address).unwrap();
            notify(&variable, b"READY=1").unwrap();
            let mut heard = [0; 16];
            assert_eq!(manager.recv(&mut heard).map(|len| heard[..len].to_vec()).unwrap(), b"READY=1");
        }
        std::fs::remove_file(file).unwrap();
    }
}
