//! A gateway that knows its peer by name.

use std::fs;

use super::bench::{Testbed, directory_of, missing, namespace_of};

/// The daemon starts before the name means anything, and calls the peer once it does.
#[test]
fn a_peer_is_found_by_its_name() {
    if missing("a_peer_is_found_by_its_name") {
        return;
    }
    let testbed = Testbed::up("name", &["--protocol", "plain"], &["--delay", "5 ms"].map(str::to_owned));
    let server = testbed.serve(20_000);
    let config = directory_of(testbed.name()).join("gw1.toml");
    let text = fs::read_to_string(&config).unwrap();
    let named = text.replace("endpoint = \"10.77.10.2:", "endpoint = \"hub.test:");
    assert_ne!(text, named, "the peer is there to be renamed");
    fs::write(&config, named).unwrap();
    // `ip netns exec` shows these to its programs in the place of the system's.
    let system = HostFiles::new(namespace_of(testbed.name(), "gw1").name());
    system.write("nsswitch.conf", "hosts: files\n");
    system.write("hosts", "127.0.0.1 localhost\n");
    testbed.kill_gateway("gw1");
    testbed.restart_gateway("gw1");
    testbed.wait_until("it runs, and calls nobody", 10, || {
        testbed.status("gw1")["peers"][0]["state"] == "never"
    });
    system.write("hosts", "10.77.10.2 hub.test\n");
    testbed.wait_until("the peer is found", 60, || testbed.status("gw1")["peers"][0]["state"] == "connected");
    testbed.download(&server, 30);
}

/// What lies in a namespace's directory of system files; removed when dropped.
pub(crate) struct HostFiles(std::path::PathBuf);

impl HostFiles {
    pub(crate) fn new(namespace: &str) -> Self {
        let directory = std::path::Path::new("/etc/netns").join(namespace);
        fs::create_dir_all(&directory).unwrap();
        Self(directory)
    }

    pub(crate) fn write(&self, name: &str, content: &str) {
        fs::write(self.0.join(name), content).unwrap();
    }
}

impl Drop for HostFiles {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
        // Their common directory too, if nobody else has one there.
        let _ = self.0.parent().map(fs::remove_dir);
    }
}
