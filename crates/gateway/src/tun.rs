//! A TUN device: IP packets to and from the kernel, super-segments whole.
//!
//! What [`Tun::read`] gives is either a plain IP packet (first nibble 4 or 6, checksums complete) or, with
//! offloads on, a super-segment behind its [metadata](tunnel::super_segment) (first nibble 0). [`Tun::write`] always takes
//! both: whether super-segments cross a link is for its sending end to decide.

mod settings;
mod watch;

use std::fs::{File, OpenOptions};
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};
use std::os::unix::fs::OpenOptionsExt as _;

use base::Packet;

use tunnel::Delivery;
use tunnel::counters::Counter;
use tunnel::super_segment::{self, METADATA_LEN, Metadata, VNET_HEADER_LEN};

pub use settings::Settings;
pub(crate) use settings::family;
pub use watch::Watch;

/// An open TUN device.
#[derive(Debug)]
pub struct Tun {
    file: File,
    name: String,
    offloads: bool,
    /// Whether it is one of several queues.
    is_queue: bool,
    /// Where the next packet is read to: the metadata's place, then room for the largest super-segment.
    scratch: Packet,
    /// Packets from the kernel that are not IP, or whose metadata makes no sense.
    pub unusable: Counter,
}

/// What happened to a packet that was written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Written {
    /// The kernel has it.
    Yes,
    /// The kernel's queue is full.
    Full,
    /// The kernel refused it, or its metadata is none.
    Refused,
}

/// Largest packet that the kernel hands over.
const PACKET_LIMIT: usize = 65_535;

impl Tun {
    /// Creates, or attaches to, the device `name`; with `offloads`, [`Tun::read`] gives super-segments whole.
    ///
    /// # Errors
    /// No such right, no TUN driver, or a name that is taken.
    pub fn open(name: &str, offloads: bool) -> io::Result<Self> {
        Self::open_as(name, offloads, false)
    }

    /// Creates, or attaches to, `count` queues of the device `name`: the kernel sends a flow to the queue that the
    /// flow's answers are written to, or else to any. With `offloads`, [`Tun::read`] gives super-segments whole.
    ///
    /// # Errors
    /// As [`Tun::open`]; or the device is there already, with one queue.
    pub fn open_queues(name: &str, offloads: bool, count: u32) -> io::Result<Vec<Self>> {
        (0..count).map(|_| Self::open_as(name, offloads, count > 1)).collect()
    }

    fn open_as(name: &str, offloads: bool, is_queue: bool) -> io::Result<Self> {
        let file =
            OpenOptions::new().read(true).write(true).custom_flags(libc::O_NONBLOCK).open("/dev/net/tun")?;
        let tun = Self {
            file,
            name: name.to_owned(),
            offloads,
            is_queue,
            scratch: Packet::default(),
            unusable: Counter::default(),
        };
        tun.attach()?;
        Ok(tun)
    }

    /// What to do about it if no device can be had, to be said behind the error.
    #[must_use]
    pub fn remedy(error: &io::Error) -> &'static str {
        match error.raw_os_error() {
            Some(libc::EPERM | libc::EACCES) => "; run this as root, or with CAP_NET_ADMIN",
            Some(libc::ENOENT | libc::ENODEV | libc::ENXIO) => "; load the driver: modprobe tun",
            Some(libc::EBUSY) => "; another program has it: end that, or choose another name",
            _ => "",
        }
    }

    /// Another handle of the same queue, which attaches it too.
    ///
    /// # Errors
    /// There is no descriptor left.
    pub fn duplicate(&self) -> io::Result<Self> {
        let (file, name) = (self.file.try_clone()?, self.name.clone());
        let Self { offloads, is_queue, .. } = *self;
        Ok(Self { file, name, offloads, is_queue, scratch: Packet::default(), unusable: Counter::default() })
    }

    /// Creates, or attaches to, the device again after somebody has removed it. That takes `CAP_NET_ADMIN`, but no right to open the
    /// driver's file anew, which may be root's alone.
    ///
    /// # Errors
    /// It is attached, no such right, or a name that is taken.
    pub fn attach(&self) -> io::Result<()> {
        let mut request = interface_request(&self.name)?;
        let queues = if self.is_queue { libc::IFF_MULTI_QUEUE } else { 0 };
        request.ifr_ifru.ifru_flags = (libc::IFF_TUN | libc::IFF_NO_PI | libc::IFF_VNET_HDR | queues) as i16;
        // SAFETY: the request takes a `struct ifreq`.
        let attached = unsafe { ioctl_pointer(&self.file, libc::TUNSETIFF, &mut request) };
        attached.map_err(|error| match error.raw_os_error() {
            Some(libc::EINVAL) if self.is_queue => io::Error::other(
                "there is such a device already, of another kind or with a single queue; several workers need one with a queue for \
                 each: remove it, or set workers = 1",
            ),
            _ => error,
        })?;
        let mut header_len = VNET_HEADER_LEN as libc::c_int;
        // SAFETY: the request takes an `int`.
        unsafe { ioctl_pointer(&self.file, libc::TUNSETVNETHDRSZ, &mut header_len) }?;
        self.set_offloads()
    }

    /// The device's name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Whether [`Tun::read`] gives super-segments whole.
    #[must_use]
    pub const fn has_offloads(&self) -> bool {
        self.offloads
    }

    /// A device that another process left may have others set: all are set anew.
    fn set_offloads(&self) -> io::Result<()> {
        if !self.offloads {
            return ioctl_value(&self.file, libc::TUNSETOFFLOAD, 0);
        }
        let tcp = libc::TUN_F_CSUM | libc::TUN_F_TSO4 | libc::TUN_F_TSO6 | libc::TUN_F_TSO_ECN;
        // Kernels before 6.2 know no UDP super-segments.
        let udp = libc::TUN_F_USO4 | libc::TUN_F_USO6;
        ioctl_value(&self.file, libc::TUNSETOFFLOAD, tcp | udp)
            .or_else(|_| ioctl_value(&self.file, libc::TUNSETOFFLOAD, tcp))
    }

    /// Reads a packet, if there is one.
    ///
    /// # Errors
    /// What the kernel says, other than that there is nothing.
    pub fn read(&mut self) -> io::Result<Option<Packet>> {
        if self.scratch.capacity() < METADATA_LEN + PACKET_LIMIT {
            self.scratch = Packet::with_capacity(METADATA_LEN + PACKET_LIMIT);
        }
        let mut header = [0; VNET_HEADER_LEN];
        loop {
            let Some(len) = self.read_scratch(&mut header)? else { return Ok(None) };
            match super_segment::read(&header, len) {
                super_segment::Read::SuperSegment(metadata) => {
                    metadata.emit(&mut self.scratch);
                    return Ok(Some(if METADATA_LEN + len > SMALL {
                        std::mem::take(&mut self.scratch)
                    } else {
                        Packet::from_slice(&self.scratch)
                    }));
                }
                super_segment::Read::Single(partial) => {
                    let packet = &mut self.scratch[METADATA_LEN..];
                    if let Some(metadata) = partial {
                        metadata.complete_checksum(packet);
                    }
                    // Else it is not IP: nothing that a link could carry.
                    if matches!(packet.first().map(|first| first >> 4), Some(4 | 6)) {
                        return Ok(Some(Packet::from_slice(packet)));
                    }
                }
                super_segment::Read::Unusable => {}
            }
            self.unusable.increment();
        }
    }

    /// Reads into the scratch buffer behind the metadata's place; the packet's length.
    fn read_scratch(&mut self, header: &mut [u8; VNET_HEADER_LEN]) -> io::Result<Option<usize>> {
        let buffer = self.scratch.as_vec_mut();
        buffer.clear();
        buffer.resize(METADATA_LEN, 0);
        let room = buffer.spare_capacity_mut();
        let parts = [
            libc::iovec { iov_base: header.as_mut_ptr().cast(), iov_len: VNET_HEADER_LEN },
            libc::iovec { iov_base: room.as_mut_ptr().cast(), iov_len: room.len() },
        ];
        // SAFETY: both parts point to writable memory of the given lengths that outlives the call.
        let len = unsafe { libc::readv(self.file.as_raw_fd(), parts.as_ptr(), parts.len() as i32) };
        match usize::try_from(len) {
            Ok(len) => {
                let len = len.saturating_sub(VNET_HEADER_LEN);
                // SAFETY: the kernel has written `len` bytes to the spare capacity after the metadata's place.
                unsafe { buffer.set_len(METADATA_LEN + len) };
                Ok(Some(len))
            }
            Err(_) => match io::Error::last_os_error() {
                error if error.kind() == io::ErrorKind::WouldBlock => Ok(None),
                error if error.kind() == io::ErrorKind::Interrupted => Ok(None),
                error => Err(error),
            },
        }
    }

    /// Writes a packet as [`Tun::read`] gives it.
    pub fn write(&mut self, packet: &[u8]) -> Written {
        let mut header = [0; VNET_HEADER_LEN];
        let body = match packet.first().map(|first| first >> 4) {
            Some(4 | 6) => packet,
            Some(0) => match Metadata::parse(packet) {
                Some((metadata, body)) => {
                    header = metadata.to_vnet_header();
                    body
                }
                None => return Written::Refused,
            },
            _ => return Written::Refused,
        };
        self.write_with_header(header, body)
    }

    /// Writes a packet for the LAN, which the kernel may have to cut up.
    pub fn deliver(&mut self, delivery: &Delivery) -> Written {
        match delivery.train {
            Some(metadata) => self.write_with_header(metadata.to_vnet_header(), &delivery.packet),
            None => self.write(&delivery.packet),
        }
    }

    fn write_with_header(&mut self, mut header: [u8; VNET_HEADER_LEN], body: &[u8]) -> Written {
        let parts = [
            libc::iovec { iov_base: header.as_mut_ptr().cast(), iov_len: VNET_HEADER_LEN },
            libc::iovec { iov_base: body.as_ptr().cast_mut().cast(), iov_len: body.len() },
        ];
        // SAFETY: both parts point to readable memory of the given lengths that outlives the call; writev does not write to it.
        let len = unsafe { libc::writev(self.file.as_raw_fd(), parts.as_ptr(), parts.len() as i32) };
        if len >= 0 {
            return Written::Yes;
        }
        match io::Error::last_os_error().kind() {
            io::ErrorKind::WouldBlock | io::ErrorKind::OutOfMemory => Written::Full,
            _ => Written::Refused,
        }
    }
}

impl AsFd for Tun {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.file.as_fd()
    }
}

/// Packets up to this size are copied to a small buffer, so that a queue of them stays small.
const SMALL: usize = 1664;

fn interface_request(name: &str) -> io::Result<libc::ifreq> {
    if name.is_empty() || name.len() >= libc::IFNAMSIZ || name.contains(['\0', '/', ' ']) {
        let message =
            format!("\"{name}\" is not an interface name; allowed are 1 to 15 bytes without space or slash");
        return Err(io::Error::new(io::ErrorKind::InvalidInput, message));
    }
    // SAFETY: ifreq is plain old data, for which all zeros is a value.
    let mut request: libc::ifreq = unsafe { std::mem::zeroed() };
    for (to, from) in request.ifr_name.iter_mut().zip(name.bytes()) {
        *to = from as libc::c_char;
    }
    Ok(request)
}

/// # Safety
/// `T` must be the type that `request` reads or writes.
unsafe fn ioctl_pointer<T>(file: &File, request: libc::Ioctl, argument: &mut T) -> io::Result<()> {
    // SAFETY: the argument is borrowed for the call, and of the type that the caller vouches for.
    check(unsafe { libc::ioctl(file.as_raw_fd(), request, std::ptr::from_mut(argument)) })
}

fn ioctl_value(file: &File, request: libc::Ioctl, argument: libc::c_uint) -> io::Result<()> {
    // SAFETY: the request takes an integer and no pointer.
    check(unsafe { libc::ioctl(file.as_raw_fd(), request, libc::c_ulong::from(argument)) })
}

fn check(result: libc::c_int) -> io::Result<()> {
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}
