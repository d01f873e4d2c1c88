/** The kernel limits of a sandbox by its memory, against those of a kernel that boots with as much. */
import { expect, test } from "vitest";
import { FIXED_SYSCTLS, isHigher, limitsFor } from "../../../guest-agent/kernel-limits.ts";

const lastOf = (value = "") => Number(value.split(" ").at(-1));

test("4096 MiB have the limits of a kernel that boots with them", () => {
  expect(limitsFor(4096)).toEqual({
    processes: 16_384,
    tmpfs: { size_mib: 2048, inodes: 524_288 },
    sysctls: expect.objectContaining({
      "kernel/threads-max": "32768",
      "fs/file-max": "419430",
      "net/ipv4/tcp_mem": "49152 65536 98304",
      "net/ipv4/udp_mem": "98304 131072 196608",
      "net/ipv4/tcp_wmem": "4096 16384 4194304",
      "net/ipv4/tcp_rmem": "4096 131072 6291456",
      "user/max_user_namespaces": "16384",
    }),
  });
});

test.each([256, 384, 512, 1024, 3072, 65_536])("%i MiB have a minimum, and grow with the memory", (mib) => {
  const { sysctls, processes, tmpfs } = limitsFor(mib);
  const smaller = limitsFor(mib / 2);
  expect(Number(sysctls["kernel/threads-max"])).toBeGreaterThanOrEqual(4096);
  expect(processes).toBe(Number(sysctls["kernel/threads-max"]) / 2);
  expect(Number(sysctls["fs/file-max"])).toBeGreaterThanOrEqual(65_536);
  expect(tmpfs.size_mib).toBe(mib / 2);
  for (const [path, value] of Object.entries(sysctls)) {
    expect([path, value]).toEqual([path, expect.stringMatching(/^\d+( \d+ \d+)?$/)]);
    expect([path, lastOf(value) >= lastOf(smaller.sysctls[path])]).toEqual([path, true]);
    const numbers = value.split(" ").map(Number);
    expect([path, numbers]).toEqual([path, numbers.toSorted((one, other) => one - other)]);
  }
});

test("watches have the limits of distributions, for any memory size", () => {
  expect(FIXED_SYSCTLS).toMatchObject({
    "fs/inotify/max_user_watches": "524288",
    "fs/inotify/max_user_instances": "8192",
  });
});

test("a limit is raised, and never lowered", () => {
  expect(isHigher("4096", "1624\n")).toBe(true);
  expect(isHigher("4096", "4096\n")).toBe(false);
  expect(isHigher("4096", "63432\n")).toBe(false);
  expect(isHigher("49152 65536 98304", "2409\t3213\t4818\n")).toBe(true);
  expect(isHigher("49152 65536 98304", "1\t2\t98304\n")).toBe(false);
});
