//! A serial line without hardware: two pseudo-terminals, and what carries bytes from each to the other.

use std::fs::File;
use std::io::{self, Read as _, Write as _};
use std::os::fd::{AsFd as _, AsRawFd as _, FromRawFd as _};
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

use base::Duration;

use gateway::carrier::serial::make_raw;
use gateway::readiness::{Interest, wait};

/// A line between two serial devices, which gateways can be told to use.
#[derive(Debug)]
pub struct NullModem {
    ends: [End; 2],
}

#[derive(Debug)]
struct End {
    line: File,
    /// Kept open, so that a gateway that ends does not hang the line up.
    _device: File,
    path: PathBuf,
    /// Bytes that the device is still to take.
    waiting: Vec<u8>,
}

/// Bytes carried at once.
const READ_LEN: usize = 1024;
/// Room for `/dev/pts/` and a number.
const PATH_LEN: usize = 64;

impl NullModem {
    /// A line with nothing on it.
    ///
    /// # Errors
    /// No pseudo-terminals left.
    pub fn open() -> io::Result<Self> {
        Ok(Self { ends: [End::open()?, End::open()?] })
    }

    /// The device at an end, 0 or 1.
    #[must_use]
    pub fn device(&self, end: usize) -> &Path {
        &self.ends[end].path
    }

    /// Waits for at most `patience` and carries what there is. `line` sees the bytes from each end and may change them,
    /// take some away and add others.
    ///
    /// # Errors
    /// What the kernel says, other than that there is nothing.
    pub fn carry(&mut self, patience: Duration, mut line: impl FnMut(usize, &mut Vec<u8>)) -> io::Result<()> {
        let [a, b] = &self.ends;
        // Who cannot write waits: the gateway at the other end then finds its buffer full.
        let (to_a, to_b) = (!a.waiting.is_empty(), !b.waiting.is_empty());
        let interests =
            [Interest::either(a.line.as_fd(), !to_b, to_a), Interest::either(b.line.as_fd(), !to_a, to_b)];
        let ready = wait(interests, Some(patience))?;
        for (from, ready) in ready.iter().enumerate() {
            if ready.read && self.ends[1 - from].waiting.is_empty() {
                let mut bytes = vec![0; READ_LEN];
                let len = unless_blocked(self.ends[from].line.read(&mut bytes))?;
                bytes.truncate(len);
                line(from, &mut bytes);
                self.ends[1 - from].waiting = bytes;
            }
        }
        self.ends.iter_mut().try_for_each(End::write)
    }
}

impl End {
    fn open() -> io::Result<Self> {
        let (mut line, mut device) = (-1, -1);
        let (name, settings, size) = (std::ptr::null_mut(), std::ptr::null(), std::ptr::null());
        // SAFETY: the two descriptors are written to, and nothing else is given.
        if unsafe { libc::openpty(&raw mut line, &raw mut device, name, settings, size) } < 0 {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: both descriptors are new and nobody else's.
        let (line, device) = unsafe { (File::from_raw_fd(line), File::from_raw_fd(device)) };
        make_raw(&device, 115_200)?;
        let mut name = [0_u8; PATH_LEN];
        // SAFETY: the name is written to memory of the given length.
        let result = unsafe { libc::ptsname_r(line.as_raw_fd(), name.as_mut_ptr().cast(), name.len()) };
        if result != 0 {
            return Err(io::Error::from_raw_os_error(result));
        }
        // SAFETY: the request changes a flag of the descriptor.
        if unsafe { libc::fcntl(line.as_raw_fd(), libc::F_SETFL, libc::O_NONBLOCK) } < 0 {
            return Err(io::Error::last_os_error());
        }
        let len = name.iter().position(|byte| *byte == 0).unwrap_or(PATH_LEN);
        let path = PathBuf::from(std::ffi::OsStr::from_bytes(&name[..len]));
        Ok(Self { line, _device: device, path, waiting: Vec::new() })
    }

    fn write(&mut self) -> io::Result<()> {
        if !self.waiting.is_empty() {
            let written = unless_blocked(self.line.write(&self.waiting))?;
            self.waiting.drain(..written);
        }
        Ok(())
    }
}

fn unless_blocked(result: io::Result<usize>) -> io::Result<usize> {
    match result {
        Err(error) if matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted) => Ok(0),
        result => result,
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use base::Instant;
    use gateway::carrier::SerialCarrier;
    use gateway::config::{self, Config};
    use tunnel::Sent;

    use super::*;

    fn open(modem: &NullModem, end: usize, key: &str) -> SerialCarrier {
        let device = modem.device(end).display();
        let text = format!(
            "[tun]\nname = \"sat0\"\n[carrier.serial]\ndevice = \"{device}\"\nbaud = 1000000\n{key}\n\
             [link]\nprotocol = \"plain\"\n[identity]\nprivate-key-file = \"k\"\n\
             [[peer]]\npublic-key = \"hSDwCYkwp1R0i33ctD73Wg2/Og0mOBr066SpjqqbTmo=\"\n"
        );
        let config = Config::parse("site.toml", &text).unwrap();
        let config::Carrier::Serial(serial) = &config.carrier else { panic!("a serial line") };
        SerialCarrier::open(serial).unwrap()
    }

    /// Carries until nothing moves, with noise in front of what the end 0 sends; what arrives at the end 1.
    fn arrived(
        modem: &mut NullModem,
        mut noise: Vec<u8>,
        now: Instant,
        to: &mut SerialCarrier,
    ) -> Vec<Vec<u8>> {
        let mut found = Vec::new();
        loop {
            let mut carried = 0;
            let line = |_, bytes: &mut Vec<u8>| {
                bytes.splice(..0, noise.drain(..));
                carried += bytes.len();
            };
            modem.carry(Duration::from_millis(5), line).unwrap();
            to.receive(now, |datagram| found.push(datagram.to_vec())).unwrap();
            if carried == 0 {
                return found;
            }
        }
    }

    #[test]
    fn datagrams_cross_and_noise_costs_little() {
        for key in ["", "efl-key = \"000102030405060708090a0b0c0d0e0f\""] {
            let mut modem = NullModem::open().unwrap();
            let (mut a, mut b) = (open(&modem, 0, key), open(&modem, 1, key));
            let mut now = Instant::ZERO + Duration::from_secs(1);
            let mut found = 0;
            for n in 0..200_u8 {
                let datagram: Vec<u8> = (0..400).map(|at: u32| (at as u8).wrapping_mul(n)).collect();
                assert_eq!(a.send(&datagram), Sent::Yes);
                // All values of a byte, those that a terminal would act upon among them.
                let noise = if n % 10 == 9 { (0..=n).collect() } else { Vec::new() };
                let got = arrived(&mut modem, noise, now, &mut b);
                found += got.iter().filter(|got| **got == datagram).count();
                now += Duration::from_millis(10);
            }
            // An unfinished header may take up to a frame behind the noise along, until the line is silent.
            arrived(&mut modem, Vec::new(), now, &mut b);
            b.receive(now + Duration::from_secs(1), |_| ()).unwrap();
            let counters: HashMap<_, _> = b.counters().into_iter().collect();
            assert!(found >= 160 && counters["frames"] >= 178, "{found} {counters:?}");
            assert!(counters["hunts"] >= 19 && counters["bits-skipped"] > 0, "{counters:?}");
        }
    }

    #[test]
    fn a_full_line_makes_wait_and_a_lost_one_is_told() {
        let mut modem = NullModem::open().unwrap();
        let (mut a, mut b) = (open(&modem, 0, ""), open(&modem, 1, ""));
        assert_eq!(a.send(&[0; 512]), Sent::Refused);
        let sent = (0..1000).take_while(|_| a.send(&[7; 500]) == Sent::Yes).count();
        assert!((2..999).contains(&sent) && a.has_unsent() && !a.flush(), "{sent}");
        let mut found = Vec::new();
        while found.len() < sent {
            found.extend(arrived(&mut modem, Vec::new(), Instant::ZERO, &mut b));
            a.flush();
        }
        assert!(found.iter().all(|datagram| *datagram == [7; 500]) && !a.has_unsent());
        drop(modem);
        assert!(b.receive(Instant::ZERO, |_| ()).is_err());
    }
}
