/**
 * All calls to libc, and so the only use of bun:ffi: functions that process 1 and the exec path need and Bun does not offer.
 *
 * Constants are for Linux on x86-64. A failed call throws SystemError with the errno, unless its comment differs.
 */
import { dlopen, FFIType, type Pointer, ptr, read } from "bun:ffi";
import { constants } from "node:os";

const { i32, u64, i64_fast, pointer, cstring } = FFIType;

const { symbols: libc } = dlopen("libc.so.6", {
  __errno_location: { args: [], returns: pointer },
  strerror: { args: [i32], returns: cstring },
  open: { args: [pointer, i32, i32], returns: i32 },
  close: { args: [i32], returns: i32 },
  faccessat: { args: [i32, pointer, i32, i32], returns: i32 },
  setfsuid: { args: [i32], returns: i32 },
  setfsgid: { args: [i32], returns: i32 },
  posix_openpt: { args: [i32], returns: i32 },
  grantpt: { args: [i32], returns: i32 },
  unlockpt: { args: [i32], returns: i32 },
  readv: { args: [i32, pointer, i32], returns: i64_fast },
  pipe2: { args: [pointer, i32], returns: i32 },
  fcntl: { args: [i32, i32, i32], returns: i32 },
  ioctl: { args: [i32, u64, pointer], returns: i32 },
  socket: { args: [i32, i32, i32], returns: i32 },
  socketpair: { args: [i32, i32, i32, pointer], returns: i32 },
  bind: { args: [i32, pointer, i32], returns: i32 },
  connect: { args: [i32, pointer, i32], returns: i32 },
  getsockopt: { args: [i32, i32, i32, pointer, pointer], returns: i32 },
  sendmmsg: { args: [i32, pointer, i32, i32], returns: i32 },
  setsockopt: { args: [i32, i32, i32, pointer, i32], returns: i32 },
  poll: { args: [pointer, u64, i32], returns: i32 },
  mount: { args: [pointer, pointer, pointer, u64, pointer], returns: i32 },
  umount2: { args: [pointer, i32], returns: i32 },
  sethostname: { args: [pointer, u64], returns: i32 },
  clock_gettime: { args: [i32, pointer], returns: i32 },
  clock_settime: { args: [i32, pointer], returns: i32 },
  setrlimit: { args: [i32, pointer], returns: i32 },
  prlimit: { args: [i32, i32, pointer, pointer], returns: i32 },
  mknod: { args: [pointer, i32, u64], returns: i32 },
  waitid: { args: [i32, i32, pointer, i32], returns: i32 },
  sched_setscheduler: { args: [i32, i32, pointer], returns: i32 },
  posix_spawn: { args: [pointer, pointer, pointer, pointer, pointer, pointer], returns: i32 },
  posix_spawnattr_init: { args: [pointer], returns: i32 },
  posix_spawnattr_setflags: { args: [pointer, i32], returns: i32 },
  posix_spawnattr_setsigdefault: { args: [pointer, pointer], returns: i32 },
  posix_spawn_file_actions_init: { args: [pointer], returns: i32 },
  posix_spawn_file_actions_adddup2: { args: [pointer, i32, i32], returns: i32 },
  posix_spawn_file_actions_addchdir_np: { args: [pointer, pointer], returns: i32 },
  posix_spawn_file_actions_addclosefrom_np: { args: [pointer, i32], returns: i32 },
  posix_spawn_file_actions_destroy: { args: [pointer], returns: i32 },
  syncfs: { args: [i32], returns: i32 },
  madvise: { args: [u64, u64, i32], returns: i32 },
  reboot: { args: [i32], returns: i32 },
  inotify_init1: { args: [i32], returns: i32 },
  inotify_add_watch: { args: [i32, pointer, i32], returns: i32 },
});

export const Errno = { EINTR: 4, EAGAIN: 11, ENODEV: 19, EADDRINUSE: 98, EINPROGRESS: 115 } as const;

export class SystemError extends Error {
  override name = "SystemError";
  readonly errno: number;
  constructor(call: string, errno: number) {
    super(`${call}: ${libc.strerror(errno)}`);
    this.errno = errno;
  }
}

function check(call: string, result: number): number {
  if (result >= 0) return result;
  throw new SystemError(call, lastErrno());
}

/** Address of this thread's errno, resolved once: a call just before the read could overwrite errno. */
const errnoLocation = libc.__errno_location();

function lastErrno(): number {
  return errnoLocation === null ? 0 : read.i32(errnoLocation);
}

/** A C string. Buffers are passed to calls directly, never as addresses: only then do they live until the call returns. */
function text(value: string): Buffer {
  return Buffer.from(`${value}\0`);
}

// ---- addresses in memory ----

const WORDS_PER_ADDRESS = 2;
/** struct iovec: address and length, eight bytes each. */
const PART = { words: 4, length: 2 } as const;

function setPart(parts: Uint32Array, index: number, address: number, length: number): void {
  setAddress(parts, index * PART.words, address);
  parts[index * PART.words + PART.length] = length;
}

function setAddress(words: Uint32Array, at: number, address: number): void {
  words[at] = address;
  words[at + 1] = address / 2 ** 32;
}

// ---- descriptors ----

const O_RDONLY = 0;
const O_RDWR = 2;
const O_NONBLOCK = 0o4000;
const O_ASYNC = 0o20000;
const F_SETFL = 4;
const F_SETOWN = 8;
const O_CLOEXEC = 0o2000000;
const FIONREAD = 0x541b;

export interface Pipe {
  read: number;
  write: number;
}

/** Both ends close at exec; a child inherits its end by the spawn. The size is a hint. */
export function pipe(bytes?: number): Pipe {
  const ends = new Int32Array(2);
  check("pipe2", libc.pipe2(ends, O_CLOEXEC));
  const [readEnd = -1, writeEnd = -1] = ends;
  const F_SETPIPE_SZ = 1031;
  if (bytes !== undefined) libc.fcntl(readEnd, F_SETPIPE_SZ, bytes);
  return { read: readEnd, write: writeEnd };
}

export function close(fd: number): void {
  libc.close(fd);
}

/** Applies to this end of a pipe alone: the other end has its own flags. */
export function setNonBlocking(fd: number): void {
  const F_GETFL = 3;
  check("fcntl", libc.fcntl(fd, F_SETFL, check("fcntl", libc.fcntl(fd, F_GETFL, 0)) | O_NONBLOCK));
}

/** The signal for readable pipes; its default action is to be ignored. */
export const READABLE_SIGNAL = "SIGURG";

/**
 * Whether this process gets READABLE_SIGNAL whenever bytes are written to a pipe, or its last writer closes it. From then on the pipe does
 * not block.
 */
export function signalWhenReadable(fd: number, is: boolean): void {
  const F_SETSIG = 10;
  if (is) {
    check("fcntl F_SETOWN", libc.fcntl(fd, F_SETOWN, process.pid));
    check("fcntl F_SETSIG", libc.fcntl(fd, F_SETSIG, constants.signals[READABLE_SIGNAL]));
  }
  check("fcntl F_SETFL", libc.fcntl(fd, F_SETFL, is ? O_NONBLOCK | O_ASYNC : O_NONBLOCK));
}

/** Maximum number of buffers per read. */
const MAX_ROOMS = 8;
const rooms = new Uint32Array(MAX_ROOMS * PART.words);

/** Reads available bytes of a non-blocking pipe, as far as they fit into these buffers; 0 if none exist, temporarily or permanently. */
export function readNow(fd: number, places: readonly Uint8Array[]): number {
  for (const [index, place] of places.entries()) setPart(rooms, index, ptr(place), place.byteLength);
  const count = Number(libc.readv(fd, rooms, places.length));
  if (count < 0 && lastErrno() === Errno.EAGAIN) return 0;
  return check("readv", count);
}

/** Opens a terminal so that this process gets SIGIO on input. */
export function openForSignal(path: string): number {
  const O_NOCTTY = 0o400;
  const fd = check(`open ${path}`, libc.open(text(path), O_RDONLY | O_NOCTTY | O_NONBLOCK | O_CLOEXEC, 0));
  check("fcntl F_SETOWN", libc.fcntl(fd, F_SETOWN, process.pid));
  check("fcntl F_SETFL", libc.fcntl(fd, F_SETFL, O_NONBLOCK | O_ASYNC));
  return fd;
}

/** Creates an unnamed file in the directory, which is removed when its descriptor is closed. */
export function openUnnamed(directory: string): number {
  const O_TMPFILE = 0o20200000;
  return check(`open in ${directory}`, libc.open(text(directory), O_RDWR | O_TMPFILE | O_CLOEXEC, 0o600));
}

/**
 * Opens a path as the user, if the user may write to it, as a connection to a socket requires. The ids apply to this thread only
 * (setfsuid(2)), and no other code runs on it before they are root's again.
 */
export function openPathAs(path: string, { uid, gid }: { uid: number; gid: number }): number {
  const O_PATH = 0o10000000;
  const W_OK = 2;
  const AT_EACCESS = 0x200;
  const AT_EMPTY_PATH = 0x1000;
  libc.setfsgid(gid);
  libc.setfsuid(uid);
  try {
    const fd = check(`open ${path}`, libc.open(text(path), O_PATH | O_CLOEXEC, 0));
    try {
      check(`access ${path}`, libc.faccessat(fd, text(""), W_OK, AT_EACCESS | AT_EMPTY_PATH));
    } catch (error) {
      close(fd);
      throw error;
    }
    return fd;
  } finally {
    libc.setfsuid(0);
    libc.setfsgid(0);
  }
}

const POLLIN = 1;
const POLLHUP = 16;

/** Polls a descriptor for reading without blocking. Returns POLLIN and the events that are always reported (POLLERR, POLLHUP). */
function polled(fd: number): number {
  // struct pollfd: i32 fd, i16 events, i16 revents; revents is the upper half of the second word here.
  const entry = new Int32Array([fd, POLLIN]);
  // A signal at this moment interrupts the call, although it would not block.
  while (libc.poll(entry, 1, 0) < 0) if (lastErrno() !== Errno.EINTR) check("poll", -1);
  return (entry[1] ?? 0) >> 16;
}

/** Whether a read would return immediately. */
export function isReadable(fd: number): boolean {
  return (polled(fd) & POLLIN) !== 0;
}

/** Whether a pipe has bytes for its reader, or is empty and has no writer left. */
export function pipeState(fd: number): "bytes" | "open" | "ended" {
  const events = polled(fd);
  if ((events & POLLIN) !== 0) return "bytes";
  return (events & POLLHUP) !== 0 ? "ended" : "open";
}

/** Number of bytes in the pipe that have not been read. */
export function unreadBytes(fd: number): number {
  const count = new Int32Array(1);
  check("ioctl FIONREAD", libc.ioctl(fd, FIONREAD, count));
  return count[0] ?? 0;
}

// ---- terminals ----

/** The two ends of a pseudo-terminal: `master` is ours and does not block, `slave` is the command's. */
export interface PseudoTerminal {
  master: number;
  slave: number;
}

export function openPseudoTerminal(): PseudoTerminal {
  const TIOCGPTPEER = 0x5441;
  const O_NOCTTY = 0o400;
  const master = check("posix_openpt", libc.posix_openpt(O_RDWR | O_NOCTTY | O_NONBLOCK | O_CLOEXEC));
  try {
    check("grantpt", libc.grantpt(master));
    check("unlockpt", libc.unlockpt(master));
    // Opens the slave end by descriptor: a guest may have mounted something over its path.
    const flags = (O_RDWR | O_NOCTTY | O_CLOEXEC) as Pointer;
    return { master, slave: check("ioctl TIOCGPTPEER", libc.ioctl(master, TIOCGPTPEER, flags)) };
  } catch (error) {
    libc.close(master);
    throw error;
  }
}

/** On a change the kernel notifies the foreground process group. Returns whether there was a terminal to set. */
export function setWindowSize(master: number, rows: number, cols: number): boolean {
  const TIOCSWINSZ = 0x5414;
  return libc.ioctl(master, TIOCSWINSZ, new Uint16Array([rows, cols, 0, 0])) === 0;
}

/** The terminal's foreground process group, which gets signals of its keys; null if absent. */
export function foregroundGroup(master: number): number | null {
  const TIOCGPGRP = 0x540f;
  const group = new Int32Array(1);
  return libc.ioctl(master, TIOCGPGRP, group) < 0 ? null : group[0] || null;
}

function withFile<T>(path: string, flags: number, use: (fd: number) => T): T {
  const fd = check(`open ${path}`, libc.open(text(path), flags | O_CLOEXEC, 0));
  try {
    return use(fd);
  } finally {
    libc.close(fd);
  }
}

// ---- sockets ----

const AF_VSOCK = 40;
const VSOCK_ADDRESS_BYTES = 16;
const SO_VM_SOCKETS_BUFFER_SIZE = 0;
const SO_VM_SOCKETS_BUFFER_MAX_SIZE = 2;
/** Receive buffer size. With the default of 256 KiB a guest without KVM spends half of its time on reporting the bytes that it has read. */
const VSOCK_BUFFER_BYTES = 1024 * 1024;
const SOCK_STREAM_FLAGS = 1 | O_NONBLOCK | O_CLOEXEC;

/** Two connected sockets within this process. */
export function socketPair(): [number, number] {
  const AF_UNIX = 1;
  const ends = new Int32Array(2);
  check("socketpair", libc.socketpair(AF_UNIX, SOCK_STREAM_FLAGS, 0, ends));
  const [one = -1, other = -1] = ends;
  return [one, other];
}

/** Maximum number of frames per call, two packets each. */
export const MAX_FRAMES = 4;
/** struct mmsghdr has 64 bytes, among them the address and number of its parts, and the number of bytes sent. */
const PACKET = { words: 16, parts: 4, count: 6, sent: 14 } as const;
/** A frame's three parts, in two packets: its header with the bytes that fit behind it, and the rest. */
const outgoing = (() => {
  const parts = new Uint32Array(3 * MAX_FRAMES * PART.words);
  const packets = new Uint32Array(2 * MAX_FRAMES * PACKET.words);
  for (let index = 0; index < 2 * MAX_FRAMES; index++) {
    const part = Math.ceil(index * 1.5);
    setAddress(packets, index * PACKET.words + PACKET.parts, ptr(parts) + part * PART.words * 4);
    packets[index * PACKET.words + PACKET.count] = index % 2 === 0 ? 2 : 1;
  }
  return { packets, parts };
})();

/**
 * Sends frames from the memory of their headers and bytes, each in two packets of at most `most` bytes, all full but the last. Returns the
 * number of bytes accepted, headers included; 0 also on failure, which the socket's owner is notified of.
 */
export function sendFrames(
  fd: number,
  headers: Uint8Array,
  headerBytes: number,
  bytes: Uint8Array,
  most: number,
): number {
  const MSG_DONTWAIT_NOSIGNAL = 0x4040;
  const { packets, parts } = outgoing;
  const end = ptr(bytes) + bytes.byteLength;
  let at: number = ptr(bytes);
  let count = 0;
  for (let part = 0; at < end; part += 3) {
    const first = Math.min(most - headerBytes, end - at);
    const second = Math.min(most, end - at - first);
    setPart(parts, part, ptr(headers) + (part / 3) * headerBytes, headerBytes);
    setPart(parts, part + 1, at, first);
    setPart(parts, part + 2, at + first, second);
    at += first + second;
    count += second > 0 ? 2 : 1;
  }
  // The kernel stops after a partially sent packet: no packet overtakes the rest of it.
  const sent = libc.sendmmsg(fd, packets, count, MSG_DONTWAIT_NOSIGNAL);
  let total = 0;
  for (let index = 0; index < sent; index++) total += packets[index * PACKET.words + PACKET.sent] ?? 0;
  return total;
}

/**
 * Starts to connect from `ownPort` without waiting: `connecting` reports completion. Throws EADDRINUSE if that port is taken; ENODEV
 * immediately while there is no device.
 */
export function beginVsockConnect(cid: number, port: number, ownPort: number): number {
  const fd = check("socket AF_VSOCK", libc.socket(AF_VSOCK, SOCK_STREAM_FLAGS, 0));
  const bytes = new BigUint64Array([BigInt(VSOCK_BUFFER_BYTES)]);
  for (const option of [SO_VM_SOCKETS_BUFFER_MAX_SIZE, SO_VM_SOCKETS_BUFFER_SIZE]) {
    libc.setsockopt(fd, AF_VSOCK, option, bytes, bytes.byteLength);
  }
  try {
    check("bind AF_VSOCK", libc.bind(fd, vsockAddress(ANY_CID, ownPort), VSOCK_ADDRESS_BYTES));
    if (libc.connect(fd, vsockAddress(cid, port), VSOCK_ADDRESS_BYTES) < 0) {
      const errno = lastErrno();
      if (errno !== Errno.EINPROGRESS) throw new SystemError("connect", errno);
    }
    return fd;
  } catch (error) {
    libc.close(fd);
    throw error;
  }
}

/** struct sockaddr_vm: u16 family, u16 zero, u32 port, u32 cid, u8 flags, 3 zero bytes. */
function vsockAddress(cid: number, port: number): Buffer {
  const address = Buffer.alloc(VSOCK_ADDRESS_BYTES);
  address.writeUInt16LE(AF_VSOCK, 0);
  address.writeUInt32LE(port, 4);
  address.writeUInt32LE(cid, 8);
  return address;
}

/** Whether a connect is still in progress. Throws if it has failed; the caller keeps the descriptor. */
export function connecting(fd: number): boolean {
  const POLLOUT = 4;
  const SOL_SOCKET = 1;
  const SO_ERROR = 4;
  // struct pollfd: i32 fd, i16 events, i16 revents.
  const entry = new Int32Array([fd, POLLOUT]);
  if (check("poll", libc.poll(entry, 1, 0)) === 0) return true;
  const failed = new Int32Array(1);
  const size = new Int32Array([4]);
  check("getsockopt", libc.getsockopt(fd, SOL_SOCKET, SO_ERROR, failed, size));
  if (failed[0]) throw new SystemError("connect", failed[0]);
  return false;
}

/** Original destination of a connection that nftables redirected; null if it was not redirected. */
export function originalDestination(fd: number): { address: Uint8Array; port: number } | null {
  const SOL_IP = 0;
  const SOL_IPV6 = 41;
  const SO_ORIGINAL_DST = 80;
  const size = new Int32Array([28]);
  // struct sockaddr_in: u16 family, u16be port, 4 bytes; struct sockaddr_in6: u16, u16be port, u32 flow, 16 bytes, u32.
  const found = Buffer.alloc(28);
  if (libc.getsockopt(fd, SOL_IP, SO_ORIGINAL_DST, found, size) === 0) {
    return { address: found.subarray(4, 8), port: found.readUInt16BE(2) };
  }
  size[0] = 28;
  if (libc.getsockopt(fd, SOL_IPV6, SO_ORIGINAL_DST, found, size) === 0) {
    return { address: found.subarray(8, 24), port: found.readUInt16BE(2) };
  }
  return null;
}

/** Closing the socket from now on sends a reset. */
export function resetOnClose(fd: number): void {
  const SOL_SOCKET = 1;
  const SO_LINGER = 13;
  libc.setsockopt(fd, SOL_SOCKET, SO_LINGER, new Int32Array([1, 0]), 8);
}

/** Receives an event for every device that is added, removed, or bound to its driver: one datagram each. */
export function deviceEventSocket(): number {
  const AF_NETLINK = 16;
  const SOCK_RAW_FLAGS = 3 | O_NONBLOCK | O_CLOEXEC;
  const NETLINK_KOBJECT_UEVENT = 15;
  const KERNEL_GROUP = 1;
  // struct sockaddr_nl: u16 family, u16 zero, u32 port (the kernel chooses), u32 groups.
  const address = Buffer.alloc(12);
  address.writeUInt16LE(AF_NETLINK, 0);
  address.writeUInt32LE(KERNEL_GROUP, 8);
  const fd = check("socket AF_NETLINK", libc.socket(AF_NETLINK, SOCK_RAW_FLAGS, NETLINK_KOBJECT_UEVENT));
  check("bind AF_NETLINK", libc.bind(fd, address, address.byteLength));
  return fd;
}

/** VMADDR_CID_ANY: the address of any device, and the kernel's result if there is no device. */
const ANY_CID = 0xffffffff;
export const NO_CID = ANY_CID;

/** The CID of this guest's vsock device, or NO_CID. */
export function localCid(): number {
  const IOCTL_VM_SOCKETS_GET_LOCAL_CID = 0x7b9;
  const cid = new Uint32Array(1);
  withFile("/dev/vsock", O_RDWR, (fd) =>
    check("ioctl GET_LOCAL_CID", libc.ioctl(fd, IOCTL_VM_SOCKETS_GET_LOCAL_CID, cid)),
  );
  return cid[0] ?? 0;
}

// ---- the machine ----

export const MountFlag = { readonly: 1, nosuid: 2, nodev: 4, noexec: 8, remount: 32, bind: 4096 } as const;

export function mount(source: string, target: string, type: string, flags: number, data: string | null): void {
  const result = libc.mount(text(source), text(target), text(type), flags, data === null ? null : text(data));
  check(`mount ${type} at ${target}`, result);
}

export function unmount(target: string): void {
  check(`umount ${target}`, libc.umount2(text(target), 0));
}

/** Detached immediately, and released when its last user has exited. */
export function unmountLazily(target: string): void {
  const MNT_DETACH = 2;
  check(`umount ${target}`, libc.umount2(text(target), MNT_DETACH));
}

export function setHostname(name: string): void {
  check("sethostname", libc.sethostname(text(name), Buffer.byteLength(name)));
}

const CLOCK_REALTIME = 0;
const NS_PER_SECOND = 1_000_000_000n;

export function setClock(ns: bigint): void {
  const time = new BigInt64Array([ns / NS_PER_SECOND, ns % NS_PER_SECOND]);
  check("clock_settime", libc.clock_settime(CLOCK_REALTIME, time));
}

export function readClock(): bigint {
  const time = new BigInt64Array(2);
  check("clock_gettime", libc.clock_gettime(CLOCK_REALTIME, time));
  return (time[0] ?? 0n) * NS_PER_SECOND + (time[1] ?? 0n);
}

/** Adds bytes to the kernel's pool at full credit, and makes it reseed its generator from them immediately. */
export function addEntropy(bytes: Uint8Array): void {
  const RNDADDENTROPY = 0x40085203;
  const RNDRESEEDCRNG = 0x5207;
  // struct rand_pool_info: i32 bits of credit, i32 bytes, then the bytes.
  const pool = Buffer.alloc(8 + bytes.byteLength);
  pool.writeInt32LE(bytes.byteLength * 8, 0);
  pool.writeInt32LE(bytes.byteLength, 4);
  pool.set(bytes, 8);
  withFile("/dev/urandom", O_RDWR, (fd) => {
    check("ioctl RNDADDENTROPY", libc.ioctl(fd, RNDADDENTROPY, pool));
    check("ioctl RNDRESEEDCRNG", libc.ioctl(fd, RNDRESEEDCRNG, null));
  });
}

/** Brings an interface up; the loopback interface gets its addresses by that alone. */
export function raiseInterface(name: string): void {
  const IFF_UP_RUNNING = 0x41;
  setInterfaceFlags(name, IFF_UP_RUNNING);
}

/** Its routes go with it. */
export function lowerInterface(name: string): void {
  setInterfaceFlags(name, 0);
}

function setInterfaceFlags(name: string, flags: number): void {
  const AF_INET = 2;
  const SOCK_DGRAM_CLOEXEC = 2 | O_CLOEXEC;
  const SIOCSIFFLAGS = 0x8914;
  // struct ifreq: 16 bytes of name, then a union, here u16 flags.
  const request = Buffer.alloc(40);
  request.write(name, 0, 15);
  request.writeUInt16LE(flags, 16);
  const fd = check("socket AF_INET", libc.socket(AF_INET, SOCK_DGRAM_CLOEXEC, 0));
  try {
    check(`set flags of ${name}`, libc.ioctl(fd, SIOCSIFFLAGS, request));
  } finally {
    libc.close(fd);
  }
}

/** Limits the number of open files, for this process and its children. */
export function setOpenFileLimit(soft: number, hard: number): void {
  const RLIMIT_NOFILE = 7;
  check("setrlimit", libc.setrlimit(RLIMIT_NOFILE, new BigUint64Array([BigInt(soft), BigInt(hard)])));
}

const RESOURCE = { processes: 6, pending_signals: 11 } as const;

/** The soft limit of a process; pid 0 is this process. */
export function resourceLimit(pid: number, kind: keyof typeof RESOURCE): number {
  const limit = new BigUint64Array(2);
  check("prlimit", libc.prlimit(pid, RESOURCE[kind], null, limit));
  return Number(limit[0]);
}

export function setResourceLimit(pid: number, kind: keyof typeof RESOURCE, most: number): void {
  check("prlimit", libc.prlimit(pid, RESOURCE[kind], new BigUint64Array([BigInt(most), BigInt(most)]), null));
}

/** Creates a device node that only its owner may use. */
export function makeDeviceNode(path: string, kind: "block" | "character", major: number, minor: number): void {
  const S_IFCHR = 0o020000;
  const S_IFBLK = 0o060000;
  const OWNERS_ALONE = 0o600;
  // The kernel's encoding: eight bits of the minor number, the major number's twelve, the minor number's other bits.
  const device = BigInt((minor & 0xff) | ((major & 0xfff) << 8)) | (BigInt(minor >> 8) << 20n);
  const mode = (kind === "block" ? S_IFBLK : S_IFCHR) | OWNERS_ALONE;
  check(`mknod ${path}`, libc.mknod(text(path), mode, device));
}

// ---- children ----

/**
 * Whether processes that this thread starts get the default priority, although its own is higher. The priority of this thread itself does
 * not change.
 */
export function resetPriorityOfChildren(is: boolean): void {
  const SCHED_OTHER = 0;
  const SCHED_RESET_ON_FORK = 0x40000000;
  libc.sched_setscheduler(0, is ? SCHED_OTHER | SCHED_RESET_ON_FORK : SCHED_OTHER, new Int32Array(1));
}

/** A process to start: leader of its own session, with default signal handling and only these descriptors. */
export interface Spawned {
  /** Used as it is, without a search. */
  path: string;
  argv: readonly string[];
  env: Readonly<Record<string, string>>;
  cwd: string;
  stdio: readonly [number, number, number];
  /** Descriptor of the cgroup to start it in; null for the caller's. */
  cgroup: number | null;
}

const SPAWN_SETSIGDEF = 0x04;
const SPAWN_SETSIGMASK = 0x08;
const SPAWN_SETSID = 0x80;
const SPAWN_SETCGROUP = 0x100;
/** Both larger than needed: glibc has 336 and 80 bytes. */
const SPAWN_ATTRIBUTE_BYTES = 512;
const SPAWN_ACTIONS_BYTES = 128;
const SIGNAL_SET_BYTES = 128;

/** From glibc 2.39, with which the agent is shipped in guests; parts of it are tested with older ones. */
const setSpawnCgroup = (() => {
  try {
    const { symbols } = dlopen("libc.so.6", { posix_spawnattr_setcgroup_np: { args: [pointer, i32], returns: i32 } });
    return symbols.posix_spawnattr_setcgroup_np;
  } catch {
    return null;
  }
})();

const spawnAttributes = (() => {
  const attributes = Buffer.alloc(SPAWN_ATTRIBUTE_BYTES);
  libc.posix_spawnattr_init(attributes);
  libc.posix_spawnattr_setsigdefault(attributes, Buffer.alloc(SIGNAL_SET_BYTES, 0xff));
  return attributes;
})();

/**
 * Starts it and returns its pid, which the caller has to wait for. It is in its cgroup from its first instruction on, and nothing of this
 * process is copied for it. Throws SystemError, also if the program could not be executed.
 */
export function spawn({ path, argv, env, cwd, stdio, cgroup }: Spawned): number {
  if (cgroup !== null && !setSpawnCgroup) throw new SystemError("posix_spawnattr_setcgroup_np", constants.errno.ENOSYS);
  if (cgroup !== null) setSpawnCgroup?.(spawnAttributes, cgroup);
  const flags = SPAWN_SETSIGDEF | SPAWN_SETSIGMASK | SPAWN_SETSID | (cgroup === null ? 0 : SPAWN_SETCGROUP);
  libc.posix_spawnattr_setflags(spawnAttributes, flags);
  const variables = Object.entries(env).map(([name, value]) => `${name}=${value}`);
  const texts = addressesOf([...argv, null, ...variables, null]);
  const variablesAt = texts.subarray((argv.length + 1) * WORDS_PER_ADDRESS);
  const actions = Buffer.alloc(SPAWN_ACTIONS_BYTES);
  libc.posix_spawn_file_actions_init(actions);
  try {
    for (let as = 0; as < stdio.length; as++) libc.posix_spawn_file_actions_adddup2(actions, stdio[as] ?? -1, as);
    libc.posix_spawn_file_actions_addclosefrom_np(actions, stdio.length);
    libc.posix_spawn_file_actions_addchdir_np(actions, text(cwd));
    const pid = new Int32Array(1);
    const errno = libc.posix_spawn(pid, text(path), actions, spawnAttributes, texts, variablesAt);
    if (errno !== 0) throw new SystemError(`spawn ${path}`, errno);
    return pid[0] ?? 0;
  } finally {
    libc.posix_spawn_file_actions_destroy(actions);
  }
}

const USUAL_TEXT_BYTES = 16 * 1024;
const usualTexts = Buffer.allocUnsafeSlow(USUAL_TEXT_BYTES);
/** Memory of strings whose addresses a call is given: no other reference keeps it alive. */
let textsInUse = usualTexts;

/** Addresses of C strings, and zeros for null. Valid until the next call. */
function addressesOf(values: readonly (string | null)[]): Uint32Array {
  let most = 0;
  // A character takes at most three bytes, a surrogate pair four.
  for (const value of values) most += value === null ? 0 : value.length * 3 + 1;
  textsInUse = most <= USUAL_TEXT_BYTES ? usualTexts : Buffer.allocUnsafeSlow(most);
  const begin = ptr(textsInUse);
  const addresses = new Uint32Array(values.length * WORDS_PER_ADDRESS);
  let at = 0;
  for (let index = 0; index < values.length; index++) {
    const value = values[index];
    if (typeof value !== "string") continue;
    if (value.includes("\0")) throw new Error("a text contains NUL");
    setAddress(addresses, index * WORDS_PER_ADDRESS, begin + at);
    at += textsInUse.write(value, at);
    textsInUse[at++] = 0;
  }
  return addresses;
}

const P_ALL = 0;
const P_PID = 1;
const WNOHANG = 1;
const WEXITED = 4;
const WNOWAIT = 0x01000000;
const SIGINFO_BYTES = 128;
const SIGINFO_CODE = 8 / 4;
const SIGINFO_PID = 16 / 4;
const SIGINFO_STATUS = 24 / 4;
const CLD_EXITED = 1;

/** A child that has exited: its exit code, or the number of its signal. */
export interface Zombie {
  pid: number;
  exit_code: number | null;
  signal: number | null;
}

/** Returns an exited child without reaping it; null if absent. */
export function peekZombie(): Zombie | null {
  return wait(P_ALL, 0, WEXITED | WNOHANG | WNOWAIT);
}

/** Reaps an exited child, the given one or any. */
export function reapZombie(pid?: number): Zombie | null {
  return pid === undefined ? wait(P_ALL, 0, WEXITED | WNOHANG) : wait(P_PID, pid, WEXITED | WNOHANG);
}

/** Whether any process except the kernel's own remains: all of them descend from process 1. */
export function hasChildren(): boolean {
  return libc.waitid(P_ALL, 0, new Int32Array(SIGINFO_BYTES / 4), WEXITED | WNOHANG | WNOWAIT) === 0;
}

/** Without children waitid fails, which here is the same as no zombie. */
function wait(kind: number, pid: number, options: number): Zombie | null {
  const info = new Int32Array(SIGINFO_BYTES / 4);
  if (libc.waitid(kind, pid, info, options) !== 0) return null;
  const { [SIGINFO_PID]: ended, [SIGINFO_CODE]: code, [SIGINFO_STATUS]: status = 0 } = info;
  if (!ended) return null;
  return code === CLD_EXITED
    ? { pid: ended, exit_code: status, signal: null }
    : { pid: ended, exit_code: null, signal: status };
}

// ---- changes of files ----

/** A non-blocking descriptor for changes of the paths that `watchPlace` adds. */
export function openInotify(): number {
  return check("inotify_init1", libc.inotify_init1(O_NONBLOCK | O_CLOEXEC));
}

/**
 * Adds a watch and returns its descriptor, which names the path in events; the same inode gets the same descriptor again. `path` has no
 * terminating zero.
 */
export function watchPlace(inotify: number, path: Uint8Array, mask: number): number {
  return check("inotify_add_watch", libc.inotify_add_watch(inotify, Buffer.concat([path, Buffer.alloc(1)]), mask));
}

// ---- memory ----

const ADVICE = { normal: 0, random: 1, pageout: 21 } as const;

/** madvise(2) on a mapping of this process, for the addresses `from` to `to`. */
export function adviseMemory(from: bigint, to: bigint, advice: keyof typeof ADVICE): void {
  check("madvise", libc.madvise(from, to - from, ADVICE[advice]));
}

// ---- the end ----

/** Flushes the root file system only: syncing the drive too would block forever if its virtiofsd is dead. */
export function syncRoot(): void {
  withFile("/", O_RDONLY, (fd) => check("syncfs", libc.syncfs(fd)));
}

/** Returns only when it failed. */
export function powerOff(): void {
  const RB_POWER_OFF = 0x4321fedc;
  check("reboot", libc.reboot(RB_POWER_OFF));
}
