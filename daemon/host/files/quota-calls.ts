/**
 * System calls of project quotas, by FFI: the project of a directory, and a project's limits and usage. Offsets and numbers are those of
 * linux/fs.h (struct fsxattr), linux/quota.h (struct if_dqblk) and linux/dqblk_xfs.h (struct fs_quota_statv), the same on x86-64 and arm64.
 * XFS accepts the generic Q_SETQUOTA and Q_GETQUOTA as ext4 and f2fs do.
 *
 * project-quota.ts tries all of them on a scratch directory when the daemon starts: if the values read back differ from the values set,
 * drives are measured instead.
 */
import { dlopen } from "bun:ffi";
import { closeSync, constants, openSync } from "node:fs";
import { check, O_CLOEXEC } from "./libc.ts";

// Both are variadic, so one declaration does not serve all callers.
const libc = dlopen("libc.so.6", {
  ioctl: { args: ["i32", "u64", "ptr"], returns: "i32" },
  syscall: { args: ["i64", "i32", "u32", "u32", "ptr"], returns: "i32" },
}).symbols;

export const FS_IOC_FSGETXATTR = 0x801c581f;
export const FS_IOC_FSSETXATTR = 0x401c5820;
export const FSXATTR_BYTES = 28;
const AT_XFLAGS = 0;
const AT_PROJECT = 12;
/** New entries of the directory belong to its project too. */
const FS_XFLAG_PROJINHERIT = 0x200;

/** Needs no device name, unlike quotactl; since Linux 5.14. */
const SYS_quotactl_fd = 443;
export const Q_SETQUOTA = quotaCommand(0x80_00_08);
export const Q_GETQUOTA = quotaCommand(0x80_00_07);
export const Q_XGETQSTATV = quotaCommand(0x58_08);

export const DQBLK_BYTES = 72;
const AT_BLOCKS_HARD = 0;
const AT_BLOCKS_SOFT = 8;
const AT_SPACE = 16;
const AT_INODES_HARD = 24;
const AT_INODES = 40;
const AT_VALID = 64;
/** The fields to be set: both limits of blocks, both of inodes. */
const QIF_LIMITS = 0x1 | 0x4;
const LIMIT_BLOCK_BYTES = 1024;

export const STATV_BYTES = 160;
const STATV_VERSION = 1;
const AT_STATE_FLAGS = 2;
const FS_QUOTA_PDQ_ENFD = 0x20;

export interface TreeLimits {
  bytes: number;
  inodes: number;
}

export interface TreeUse extends TreeLimits {
  limits: TreeLimits;
}

/** Quota requests to the kernel. All throw SystemError. */
export interface QuotaCalls {
  /** Whether the file system of this directory enforces project limits. Throws if it has no project quotas. */
  enforces(directory: string): boolean;
  /** The project of new entries in the directory; 0: no project. */
  projectOf(directory: string): number;
  setProject(directory: string, project: number): void;
  /** Usage and limits of a project, on the file system of this directory. */
  use(directory: string, project: number): TreeUse;
  /** 0 is no limit. */
  setLimits(directory: string, project: number, limits: TreeLimits): void;
}

export const quotaCalls: QuotaCalls = {
  enforces: (directory) => {
    const state = Buffer.alloc(STATV_BYTES);
    state.writeInt8(STATV_VERSION, 0);
    quotactl(directory, Q_XGETQSTATV, 0, state);
    return (state.readUInt16LE(AT_STATE_FLAGS) & FS_QUOTA_PDQ_ENFD) !== 0;
  },
  projectOf: (directory) => projectIn(attributesOf(directory)),
  setProject: (directory, project) =>
    onDirectory(directory, (descriptor) => {
      const attributes = withProject(attributesOf(directory), project);
      check(libc.ioctl(descriptor, FS_IOC_FSSETXATTR, attributes), "FS_IOC_FSSETXATTR");
    }),
  use: (directory, project) => {
    const block = Buffer.alloc(DQBLK_BYTES);
    quotactl(directory, Q_GETQUOTA, project, block);
    return readUse(block);
  },
  setLimits: (directory, project, limits) => quotactl(directory, Q_SETQUOTA, project, limitsBlock(limits)),
};

/** QCMD of linux/quota.h for projects. */
function quotaCommand(command: number): number {
  const PRJQUOTA = 2;
  return command * 0x100 + PRJQUOTA;
}

function quotactl(directory: string, command: number, project: number, block: Buffer): void {
  onDirectory(directory, (descriptor) => {
    check(libc.syscall(SYS_quotactl_fd, descriptor, command, project, block), "quotactl_fd");
  });
}

function attributesOf(directory: string): Buffer {
  const attributes = Buffer.alloc(FSXATTR_BYTES);
  onDirectory(directory, (descriptor) => {
    check(libc.ioctl(descriptor, FS_IOC_FSGETXATTR, attributes), "FS_IOC_FSGETXATTR");
  });
  return attributes;
}

function onDirectory(directory: string, call: (descriptor: number) => void): void {
  const { O_DIRECTORY, O_NOFOLLOW, O_RDONLY } = constants;
  const descriptor = openSync(directory, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
  try {
    call(descriptor);
  } finally {
    closeSync(descriptor);
  }
}

/** Sets this project in a struct fsxattr; the other fields stay. */
export function withProject(attributes: Buffer, project: number): Buffer {
  attributes.writeUInt32LE((attributes.readUInt32LE(AT_XFLAGS) | FS_XFLAG_PROJINHERIT) >>> 0, AT_XFLAGS);
  attributes.writeUInt32LE(project, AT_PROJECT);
  return attributes;
}

/** A directory's project; 0 if its entries do not inherit the project. */
export function projectIn(attributes: Buffer): number {
  const inherits = (attributes.readUInt32LE(AT_XFLAGS) & FS_XFLAG_PROJINHERIT) !== 0;
  return inherits ? attributes.readUInt32LE(AT_PROJECT) : 0;
}

/** struct if_dqblk that sets these hard limits and no soft ones. */
export function limitsBlock({ bytes, inodes }: TreeLimits): Buffer {
  const block = Buffer.alloc(DQBLK_BYTES);
  block.writeBigUInt64LE(BigInt(Math.ceil(bytes / LIMIT_BLOCK_BYTES)), AT_BLOCKS_HARD);
  block.writeBigUInt64LE(BigInt(inodes), AT_INODES_HARD);
  block.writeUInt32LE(QIF_LIMITS, AT_VALID);
  return block;
}

/** Parses the reply of Q_GETQUOTA; a soft limit that another program has set counts as a limit. */
export function readUse(block: Buffer): TreeUse {
  const number = (at: number) => Number(block.readBigUInt64LE(at));
  const hardOrSoft = (hard: number) => number(hard) || number(hard + AT_BLOCKS_SOFT);
  return {
    bytes: number(AT_SPACE),
    inodes: number(AT_INODES),
    limits: { bytes: hardOrSoft(AT_BLOCKS_HARD) * LIMIT_BLOCK_BYTES, inodes: hardOrSoft(AT_INODES_HARD) },
  };
}
