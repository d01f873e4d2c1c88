/** User and group ids of guests' processes, and conflicts with existing ids. */
import { expect, test } from "vitest";
import { asBoundRoot, asNamespaceRoot, asUser } from "../../../../daemon/host/isolation/argv.ts";
import {
  COMPUTED_IDS,
  DRIVE_RANGE,
  driveRoot,
  ID_SPAN,
  ORG_GROUPS,
  sandboxIds,
} from "../../../../daemon/host/isolation/ids.ts";
import { makeIsolation } from "../../../../daemon/host/isolation/index.ts";
import { missingIds, takenIds } from "../../../../daemon/host/isolation/inspect.ts";
import { newId } from "../../../../shared/ids.ts";

const BASE = 1_900_019_712;
const COUNT = 2000;

test("sandboxes' users are in our range, stable, and differ from those of drives and of each other", () => {
  const seen = new Set<number>();
  for (let n = 0; n < COUNT; n++) {
    const sandboxId = newId("sbx");
    const { qemu, vsock } = sandboxIds(BASE, sandboxId);
    expect(sandboxIds(BASE, sandboxId)).toEqual({ qemu, vsock });
    for (const uid of [qemu, vsock]) {
      expect(uid).toBeGreaterThanOrEqual(BASE + 1024 * DRIVE_RANGE);
      expect(uid).toBeLessThan(BASE + COMPUTED_IDS);
      seen.add(uid);
    }
  }
  // By chance two in 2000 share a pair once in seventeen runs; five never do.
  expect(seen.size).toBeGreaterThan(2 * COUNT - 10);
});

test("a room's drive has its own whole range", () => {
  for (let n = 0; n < COUNT; n++) {
    const root = driveRoot(BASE, newId("rom"));
    expect((root - BASE) % DRIVE_RANGE).toBe(0);
    expect(root).toBeGreaterThanOrEqual(BASE);
    expect(root + DRIVE_RANGE).toBeLessThanOrEqual(BASE + 1024 * DRIVE_RANGE);
  }
});

test("without a base everything belongs to root, and without namespaces drives do", () => {
  const off = makeIsolation({ base: 0, namespaces: true, mounts: true, kvmGroups: [] });
  expect([off.usersOf("sbx_1"), off.newDriveRoot("rom_1")]).toEqual([null, 0]);
  const halved = makeIsolation({ base: BASE, namespaces: false, mounts: false, kvmGroups: [106] });
  expect(halved.newDriveRoot("rom_1")).toBe(0);
  expect(halved.usersOf("sbx_1")).toEqual({
    qemu: { uid: sandboxIds(BASE, "sbx_1").qemu, groups: [106, halved.templateGroup] },
    vsock: { uid: sandboxIds(BASE, "sbx_1").vsock, groups: [] },
  });
});

test("a guest's QEMU is only in groups for KVM, the host's and its organization's templates, none a user's", () => {
  const kvm = 106;
  const isolation = makeIsolation({ base: BASE, namespaces: true, mounts: true, kvmGroups: [kvm] });
  const host = isolation.templateGroup ?? 0;
  const [none, first, last] = [null, 0, ORG_GROUPS - 1].map((number) => isolation.ofOrg(number));
  const groups = [isolation, none, first, last].map((of) => of?.usersOf("sbx_1")?.qemu.groups);
  expect(groups).toEqual([
    [kvm, host],
    [kvm, host],
    [kvm, host, BASE + COMPUTED_IDS],
    [kvm, host, BASE + ID_SPAN - 1],
  ]);
  expect([none?.templateGroup, first?.templateGroup]).toEqual([host, BASE + COMPUTED_IDS]);
  expect(first?.readerOf("sbx_1")?.groups).toEqual([host, BASE + COMPUTED_IDS]);
  expect(first?.ofOrg(null).usersOf("sbx_1")).toEqual(isolation.usersOf("sbx_1"));
  expect(first?.usersOf("sbx_1")?.qemu.uid).toBe(isolation.usersOf("sbx_1")?.qemu.uid);
  expect(() => isolation.ofOrg(ORG_GROUPS).templateGroup).toThrow(/beyond the 65536/);
});

test.for([
  ["nobody's", "", []],
  ["below", "a:x:1000:1000::/:/bin/sh\nb:x:65534:65534::/:", []],
  ["the first", `mary:x:${BASE}:5::/home:/bin/sh`, ["/etc/passwd assigns user ids of roomd's guests to mary."]],
  ["the last", `mary:x:${BASE + ID_SPAN - 1}:5::/:`, ["/etc/passwd assigns user ids of roomd's guests to mary."]],
  ["past the last", `mary:x:${BASE + ID_SPAN}:5::/:`, []],
  ["no number", "mary:x:::::\n::\n\n+::::::", []],
] as const)("a user in our range is found: %s", ([, passwd, taken]) => {
  expect(takenIds(BASE, (file) => (file === "passwd" ? passwd : ""))).toEqual(taken);
});

test.for([
  ["below", "mary:100000:65536", 0],
  ["up to the first", `mary:${BASE - 65_536}:65536`, 0],
  ["over the first", `mary:${BASE - 65_536}:65537`, 1],
  ["within", `mary:${BASE + 70_000}:10\nbob:${BASE + 80_000}:10`, 2],
  ["around", "root:1:4294967294", 1],
] as const)("subordinate ids in our range are found: %s", ([, subuid, count]) => {
  expect(takenIds(BASE, (file) => (file === "subuid" ? subuid : ""))).toHaveLength(count);
});

test("ids missing in a container are reported", () => {
  expect(missingIds(BASE, "         0          0 4294967295\n")).toEqual([]);
  expect(missingIds(BASE, `0 100000 65536\n${BASE} 500000 ${ID_SPAN}\n`)).toEqual([]);
  expect(missingIds(BASE, "0 100000 65536\n")).toHaveLength(1);
  expect(missingIds(BASE, `${BASE} 500000 ${ID_SPAN - 1}\n`)).toHaveLength(1);
});

test("a command line drops all rights before the program starts", () => {
  expect(asUser({ uid: 7, groups: [] }, ["qemu", "-S"])).toEqual([
    "unshare",
    "--net",
    "setpriv",
    "--reuid=7",
    "--regid=7",
    "--clear-groups",
    "--no-new-privs",
    "--inh-caps=-all",
    "--bounding-set=-all",
    "qemu",
    "-S",
  ]);
  expect(asUser({ uid: 7, groups: [106] }, ["qemu"])).toContain("--groups=106");
  expect(asNamespaceRoot(["virtiofsd", "a b;$(id)"]).slice(-2)).toEqual(["virtiofsd", "a b;$(id)"]);
  expect(asBoundRoot(["virtiofsd"]).find((word) => word.startsWith("--bounding-set"))).toBe(
    "--bounding-set=-all,+chown,+dac_override,+fowner,+fsetid,+setgid,+setuid,+mknod,+setfcap,+setpcap,+sys_admin",
  );
});
