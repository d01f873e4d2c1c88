/**
 * Quotas kept by the kernel: the layout of the calls' arguments, the reply for a real directory of a host without them, and the handling of
 * replies of a kernel that has them, simulated here by a table. No test uses a real one.
 */
import { mkdirSync, mkdtempSync, readdirSync, rmSync, statSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { makeLog } from "../../../../daemon/core/log.ts";
import { SystemError } from "../../../../daemon/host/files/libc.ts";
import { inspectProjectQuota, ProjectQuota } from "../../../../daemon/host/files/project-quota.ts";
import {
  DQBLK_BYTES,
  FS_IOC_FSGETXATTR,
  FS_IOC_FSSETXATTR,
  FSXATTR_BYTES,
  limitsBlock,
  projectIn,
  Q_GETQUOTA,
  Q_SETQUOTA,
  Q_XGETQSTATV,
  type QuotaCalls,
  quotaCalls,
  readUse,
  STATV_BYTES,
  type TreeUse,
  withProject,
} from "../../../../daemon/host/files/quota-calls.ts";

const MIB = 1024 ** 2;
let base: string;
beforeEach(() => {
  base = mkdtempSync(join(tmpdir(), "roomd-quota-"));
});
afterEach(() => rmSync(base, { recursive: true, force: true }));

describe("the layout of the calls", () => {
  test("numbers are those of linux/fs.h, linux/quota.h and linux/dqblk_xfs.h", () => {
    // _IOR('X', 31, struct fsxattr), _IOW('X', 32, struct fsxattr) with 28 bytes.
    expect([FS_IOC_FSGETXATTR, FS_IOC_FSSETXATTR, FSXATTR_BYTES]).toEqual([0x801c581f, 0x401c5820, 28]);
    // (command << 8) | PRJQUOTA, as unsigned.
    expect([Q_GETQUOTA, Q_SETQUOTA, Q_XGETQSTATV]).toEqual([0x80000702, 0x80000802, 0x00580802]);
    expect([DQBLK_BYTES, STATV_BYTES]).toEqual([72, 160]);
  });

  test("struct fsxattr: flags at 0, project at 12, all else unchanged", () => {
    const before = Buffer.alloc(FSXATTR_BYTES, 0);
    before.writeUInt32LE(0x8000_0010, 0);
    before.writeUInt32LE(7, 4);
    const after = withProject(Buffer.from(before), 0x7fff_fffe);
    expect(after.toString("hex")).toBe(`10020080${"07000000"}${"00000000"}feffff7f${"00".repeat(12)}`);
    expect([projectIn(before), projectIn(after)]).toEqual([0, 0x7fff_fffe]);
    // A project that is not inherited by new entries of the directory.
    after.writeUInt32LE(0, 0);
    expect(projectIn(after)).toBe(0);
  });

  test("struct if_dqblk: hard limits at 0 (in KiB) and 24, valid fields at 64, use at 16 and 40", () => {
    const block = limitsBlock({ bytes: 5 * 1024 ** 3 + 1, inodes: 1_000_001 });
    const words = Array.from({ length: 8 }, (_, n) => Number(block.readBigUInt64LE(n * 8)));
    expect(words).toEqual([5 * MIB + 1, 0, 0, 1_000_001, 0, 0, 0, 0]);
    expect([block.readUInt32LE(64), block.readUInt32LE(68), block.length]).toEqual([5, 0, 72]);
    block.writeBigUInt64LE(12_345n, 16);
    block.writeBigUInt64LE(67n, 40);
    expect(readUse(block)).toEqual({
      bytes: 12_345,
      inodes: 67,
      limits: { bytes: (5 * MIB + 1) * 1024, inodes: 1_000_001 },
    });
  });
});

test("a file system without project quotas is detected: no trial file remains, and drives are measured", () => {
  const { kind, reason } = inspectProjectQuota(base);
  if (kind === "project_quota") return console.log(`left out: ${base} does have project quotas`);
  expect(reason).toMatch(/ data_dir .*(E[A-Z]+|no limit)/);
  expect(readdirSync(base)).toEqual([]);
  expect(() => quotaCalls.use(base, 2 ** 30)).toThrow(SystemError);
  const quota = new ProjectQuota({ kind }, QUIET);
  quota.begin(base, "rom_1", { bytes: MIB, inodes: 1 });
  expect(quota.use(base)).toBeNull();
});

describe("with a kernel that keeps them", () => {
  test("a directory gets its own project with limits, which are removed before it", () => {
    const kernel = playKernel();
    const quota = new ProjectQuota({ kind: "project_quota" }, QUIET, kernel.calls);
    const [one, two] = [makeDirectory("one"), makeDirectory("two")];
    quota.begin(one, "rom_1", { bytes: 10 * MIB, inodes: 100 });
    quota.begin(two, "rom_2", { bytes: 20 * MIB, inodes: 200 });
    const projects = [one, two].map((directory) => kernel.calls.projectOf(directory));
    expect(new Set(projects).size).toBe(2);
    for (const project of projects) expect([project >= 2 ** 30, project < 2 ** 31]).toEqual([true, true]);
    expect(kernel.limitsOf(projects[0])).toEqual({ bytes: 10 * MIB, inodes: 101 });
    expect(quota.use(one)).toEqual({ bytes: 0, inodes: 0 });
    kernel.write(one, 3 * MIB, 2);
    expect(quota.use(one)).toEqual({ bytes: 3 * MIB, inodes: 2 });
    quota.renew(one, { bytes: 30 * MIB, inodes: 300 });
    expect(kernel.limitsOf(projects[0])).toEqual({ bytes: 30 * MIB, inodes: 301 });
    quota.end(one);
    expect(kernel.limitsOf(projects[0])).toEqual({ bytes: 0, inodes: 0 });
    expect(quota.use(one)).toBeNull();
    expect(kernel.limitsOf(projects[1])).toEqual({ bytes: 20 * MIB, inodes: 201 });
  });

  test("a project with a limit or usage is taken, and another one is chosen", () => {
    const kernel = playKernel();
    const daemons = [0, 1].map(() => new ProjectQuota({ kind: "project_quota" }, QUIET, kernel.calls));
    const directories = ["a", "b", "c"].map(makeDirectory);
    const [a = "", b = "", c = ""] = directories;
    // The same seed simulates a collision.
    daemons[0]?.begin(a, "rom_1", { bytes: MIB, inodes: 1 });
    daemons[1]?.begin(b, "rom_1", { bytes: MIB, inodes: 1 });
    kernel.write(a, MIB / 2, 1);
    daemons[0]?.end(a);
    // Its limits have gone and its files not yet.
    daemons[1]?.begin(c, "rom_1", { bytes: MIB, inodes: 1 });
    expect(new Set(directories.map((directory) => kernel.calls.projectOf(directory))).size).toBe(3);
  });

  test("an existing drive, or one without a project, is measured", () => {
    const kernel = playKernel();
    const quota = new ProjectQuota({ kind: "project_quota" }, QUIET, kernel.calls);
    expect(quota.use(makeDirectory("old"))).toBeNull();
    const refusing = new ProjectQuota({ kind: "project_quota" }, QUIET, {
      ...kernel.calls,
      setLimits: () => {
        throw new SystemError("EPERM", "quotactl_fd");
      },
    });
    const fresh = makeDirectory("fresh");
    refusing.begin(fresh, "rom_1", { bytes: MIB, inodes: 1 });
    expect(refusing.use(fresh)).toBeNull();
    expect(quota.use(join(base, "gone"))).toBeNull();
    quota.end(join(base, "gone"));
  });

  test("is used only if the trial succeeds: one that enforces nothing, or counts nothing, is not", () => {
    const kernel = playKernel();
    const trial = (calls: Partial<QuotaCalls>) => inspectProjectQuota(base, { ...kernel.calls, ...calls }).kind;
    expect(trial({})).toBe("measured");
    kernel.countsTrials = true;
    expect(trial({})).toBe("project_quota");
    expect(trial({ enforces: () => false })).toBe("measured");
    expect(trial({ setProject: () => {} })).toBe("measured");
    expect(readdirSync(base)).toEqual([]);
    expect(kernel.limited()).toEqual([]);
  });
});

const QUIET = makeLog("error", () => {});

function makeDirectory(name: string): string {
  mkdirSync(join(base, name));
  return join(base, name);
}

/** Simulated file system with project quotas: a table of projects, and one of directories. */
function playKernel() {
  const projects = new Map<number, TreeUse>();
  const directories = new Map<number, number>();
  const inode = (directory: string) => statSync(directory).ino;
  const nothing = (): TreeUse => ({ bytes: 0, inodes: 0, limits: { bytes: 0, inodes: 0 } });
  const entryOf = (project: number) => projects.get(project) ?? nothing();
  const kernel = {
    /** Whether it counts the actual contents of a directory. */
    countsTrials: false,
    calls: {
      enforces: () => true,
      projectOf: (directory) => directories.get(inode(directory)) ?? 0,
      setProject: (directory, project) => {
        directories.set(inode(directory), project);
        projects.set(project, { ...entryOf(project), inodes: 1 });
      },
      use: (directory, project) => {
        const use = projects.get(project);
        if (!use) throw new SystemError("ENOENT", "quotactl_fd");
        if (!kernel.countsTrials || directories.get(inode(directory)) !== project) return use;
        const files = readdirSync(directory).map((name) => statSync(join(directory, name)).size);
        return { ...use, bytes: files.reduce((sum, size) => sum + size, 0), inodes: 1 + files.length };
      },
      setLimits: (_directory, project, limits) => {
        projects.set(project, { ...entryOf(project), limits });
      },
    } satisfies QuotaCalls as QuotaCalls,
    write: (directory: string, bytes: number, inodes: number) => {
      const project = kernel.calls.projectOf(directory);
      const use = entryOf(project);
      projects.set(project, { ...use, bytes: use.bytes + bytes, inodes: use.inodes + inodes });
    },
    limitsOf: (project = 0) => entryOf(project).limits,
    limited: () => [...projects.values()].filter(({ limits }) => limits.bytes + limits.inodes > 0),
  };
  return kernel;
}
