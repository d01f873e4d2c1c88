/** Checks of the service, among them those of the link between host and guests. */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, expect, test } from "vitest";
import { makePaths } from "../../../../daemon/core/config/paths.ts";
import {
  type ClockFindings,
  type DirectoryFindings,
  dataDirCheck,
  type HostFindings,
  type MembershipFindings,
  type PasskeyFindings,
  runChecks,
} from "../../../../daemon/domain/service/checks.ts";
import type { Templates } from "../../../../daemon/domain/templates/registry.ts";
import { GENERATION, OLDEST_GENERATION, PROOF_GENERATION } from "../../../../shared/agent-protocol/messages.ts";

const home = mkdtempSync(join(tmpdir(), "roomd-checks-"));
afterAll(() => rmSync(home, { recursive: true, force: true }));

const FINDINGS: HostFindings = {
  acceleration: { acceleration: "kvm", reason: "" },
  configured_acceleration: "auto",
  qemu_version: "10.0.2",
  virtiofsd: "virtiofsd",
  vsock: { kind: "kernel", reason: "Guests use the kernel's vhost-vsock." },
  vsock_listeners: { ports: [] },
  isolation: { base: 1, problems: [], namespaces: true, mounts: true, kvm_opens: true },
  confinement: { kind: "none", reason: "" },
  runtime: [],
  ssh: null,
  drive_quota: { kind: "measured", reason: "" },
  web: null,
} as HostFindings;
const NO_SANDBOXES = { quarantined: [], awaited: 0, shutdown: null };

function passkeys(found: PasskeyFindings | null) {
  const paths = makePaths({ data_dir: home, runtime_dir: home });
  const checks = runChecks(FINDINGS, { list: () => [] } as unknown as Templates, paths, NO_SANDBOXES, {
    passkeys: found,
    backups: null,
    anchors: null,
    clock: null,
    membership: null,
    directory: null,
    threads: null,
  });
  return checks.find(({ id }) => id === "passkeys");
}

test("passkeys of another name cause a warning, and so does a service without a name", () => {
  expect(passkeys(null)?.status).toBe("ok");
  expect(passkeys({ rp_id: "rooms.example.org", elsewhere: [] })?.status).toBe("ok");
  expect(passkeys({ rp_id: null, elsewhere: [] })).toMatchObject({
    status: "warn",
    remedy: expect.stringContaining("base_url"),
  });
  const moved = passkeys({ rp_id: "new.example.org", elsewhere: [{ rp_id: "old.example.org", passkeys: 3 }] });
  expect([moved?.status, moved?.message]).toEqual([
    "warn",
    expect.stringMatching(/^3 .*old\.example\.org.*new\.example\.org/),
  ]);
});

function check(
  id: string,
  findings: Partial<HostFindings>,
  generations: Record<string, number> = { default: GENERATION },
) {
  const list = () =>
    Object.entries(generations).map(([template_id, generation]) => ({
      record: { template_id },
      manifest: { generation },
    }));
  const paths = makePaths({ data_dir: home, runtime_dir: home });
  const checks = runChecks({ ...FINDINGS, ...findings }, { list } as unknown as Templates, paths, NO_SANDBOXES, {
    passkeys: null,
    backups: null,
    anchors: null,
    clock: null,
    membership: null,
    directory: null,
    threads: null,
  });
  return checks.find((each) => each.id === id);
}

test("a template whose agent does not authenticate itself or the host must be rebuilt", () => {
  expect(check("templates", {})).toMatchObject({ status: "ok", message: "Templates: default." });
  for (const python of [OLDEST_GENERATION, PROOF_GENERATION]) {
    expect(check("templates", {}, { default: GENERATION, python })).toMatchObject({
      status: "warn",
      message: expect.stringMatching(/: default, python\..*: python\./),
      remedy: expect.stringContaining("roomd template build python"),
    });
  }
  expect(check("templates", {}, {})).toMatchObject({ status: "fail" });
});

test("other listeners on the host's vsock are named, with the remedy", () => {
  const checked = (vsock_listeners: HostFindings["vsock_listeners"]) => check("vsock_listeners", { vsock_listeners });
  expect(checked({ ports: [] })).toMatchObject({ status: "ok", remedy: null });
  expect(checked(null)).toMatchObject({ status: "ok", remedy: null });
  expect(checked({ ports: [22, 9999] })).toMatchObject({
    status: "warn",
    message: expect.stringContaining("22, 9999"),
    remedy: expect.stringContaining("systemd.ssh_auto=no"),
  });
  expect(checked({ ports: [9999] })).toMatchObject({
    status: "warn",
    message: expect.stringContaining(" 9999"),
    remedy: expect.stringContaining("vhost-user"),
  });
  expect(checked({ unknown: "ENOENT" })).toMatchObject({ status: "ok", remedy: expect.stringContaining("vsock_diag") });
});

test("a missing requirement of roomd makes the service unavailable, and is reported", () => {
  expect(check("runtime", {})).toMatchObject({ status: "ok" });
  const problem = "The support of this host for facts of files does not work, and roomd needs it: ENOSYS: statx.";
  expect(check("runtime", { runtime: [problem] })).toMatchObject({ status: "fail", message: problem });
  expect(check("ssh", { ssh: null })).toMatchObject({ status: "ok" });
  expect(check("ssh", { ssh: problem })).toMatchObject({ status: "warn", message: problem });
});

test("drives without a kernel quota are a warning", () => {
  const checked = (kind: "measured" | "project_quota") =>
    check("drive_quota", { drive_quota: { kind, reason: "Why." } });
  expect(checked("project_quota")).toMatchObject({ status: "ok", message: "Why.", remedy: null });
  expect(checked("measured")).toMatchObject({
    status: "warn",
    message: expect.stringMatching(/^Why\. ./),
    remedy: expect.stringContaining("prjquota"),
  });
});

test("restrictions of browsers at the pages' URL are reported, with the remedy", () => {
  const web = {
    url: "https://rooms.example.org",
    is_trustworthy: true,
    has_tls: true,
    is_local: false,
    has_proxies: false,
    ports_domain: null as string | null,
  };
  const checked = (more: Partial<typeof web>) => check("web", { web: { ...web, ...more } });
  expect(check("web", { web: null })).toMatchObject({ status: "ok", remedy: null });
  expect(checked({})).toMatchObject({ status: "ok", message: expect.stringContaining(web.url), remedy: null });
  expect(checked({ url: "http://rooms.example.org", is_trustworthy: false, has_tls: false })).toMatchObject({
    status: "warn",
    message: expect.stringContaining("http://rooms.example.org"),
    remedy: expect.stringContaining("tls.mode"),
  });
  expect(checked({ url: "https://example.org/rooms" })?.message).toContain(" /rooms");
  expect(checked({ has_tls: false })?.remedy).toMatch(/http\.listen.*http\.trusted_proxies/);
  expect(checked({ has_tls: false, is_local: true, has_proxies: true })).toMatchObject({ status: "ok" });
  expect(checked({ ports_domain: "ports.example.org:8443" })).toMatchObject({
    status: "warn",
    remedy: expect.stringContaining("ports.domain"),
  });
  expect(checked({ ports_domain: "ports.example.net" })).toMatchObject({ status: "ok" });
  expect(checked({ url: "http://127.0.0.1:8080", has_tls: false, ports_domain: "p.roomd.localhost" })).toMatchObject({
    status: "ok",
  });
});

test.each([
  [0x6969, "fail"],
  [0xfe534d42, "fail"],
  [0xc36400, "warn"],
  [0xef53, "ok"],
  [0x58465342, "ok"],
])("data_dir on a file system of type 0x%s is %s", (type, status) => {
  expect(dataDirCheck("/var/lib/roomd", type).status).toBe(status);
});

const NOTHING_SHARED = {
  ...{ passkeys: null, backups: null, anchors: null, clock: null, membership: null, directory: null, threads: null },
};

test("a host that is no member fails, and one that has not read the directory is a warning", () => {
  const checked = (membership: MembershipFindings | null) => {
    const paths = makePaths({ data_dir: home, runtime_dir: home });
    const none = { list: () => [] } as unknown as Templates;
    const checks = runChecks(FINDINGS, none, paths, NO_SANDBOXES, { ...NOTHING_SHARED, membership });
    return checks.find(({ id }) => id === "membership")?.status;
  };
  expect(checked(null)).toBe("ok");
  expect(checked({ is_member: true, has_followed: true })).toBe("ok");
  expect(checked({ is_member: null, has_followed: false })).toBe("warn");
  expect(checked({ is_member: false, has_followed: true })).toBe("fail");
});

test("a shared database that may lose acknowledged commits is reported", () => {
  const checked = (directory: DirectoryFindings | null) => {
    const paths = makePaths({ data_dir: home, runtime_dir: home });
    const none = { list: () => [] } as unknown as Templates;
    const checks = runChecks(FINDINGS, none, paths, NO_SANDBOXES, { ...NOTHING_SHARED, directory });
    const { status, message, remedy } = checks.find(({ id }) => id === "directory") ?? {};
    return [status, message, remedy];
  };
  const unfit = { rows: 0, named: [] };
  const safe = { fsync: true, full_page_writes: true, synchronous_standby_names: "" };
  expect(checked({ servers: 1, settings: null, unfit })[0]).toBe("ok");
  expect(checked({ servers: 1, settings: safe, unfit })[0]).toBe("ok");
  expect(checked({ servers: 1, settings: { ...safe, fsync: false, full_page_writes: false }, unfit })).toEqual([
    "warn",
    expect.stringMatching(/fsync = off.*full_page_writes = off/),
    expect.not.stringContaining("synchronous_standby_names"),
  ]);
  expect(checked({ servers: 3, settings: safe, unfit })).toEqual([
    "warn",
    expect.stringContaining("cluster.url"),
    expect.stringContaining("synchronous_standby_names"),
  ]);
  expect(checked({ servers: 3, settings: { ...safe, synchronous_standby_names: "ANY 1 (*)" }, unfit })[0]).toBe("ok");
});

test("rows that do not fit are counted, and named to the operator alone", () => {
  const checked = (unfit: DirectoryFindings["unfit"]) => {
    const paths = makePaths({ data_dir: home, runtime_dir: home });
    const none = { list: () => [] } as unknown as Templates;
    const directory = { servers: 1, settings: null, unfit };
    const checks = runChecks(FINDINGS, none, paths, NO_SANDBOXES, { ...NOTHING_SHARED, directory });
    const { status, message } = checks.find(({ id }) => id === "directory_rows") ?? {};
    return [status, message];
  };
  expect(checked({ rows: 0, named: [] })[0]).toBe("ok");
  expect(checked({ rows: 1, named: [] })[0]).toBe("warn");
  expect(checked({ rows: 2, named: ["orgs a: why"] })).toEqual([
    "warn",
    expect.stringMatching(/^2 rows .* orgs a: why\.$/),
  ]);
});

test("a difference to the database's clock is reported, with its direction and amount", () => {
  const checked = (clock: ClockFindings | null) => {
    const paths = makePaths({ data_dir: home, runtime_dir: home });
    const more = { ...NOTHING_SHARED, clock };
    const none = { list: () => [] } as unknown as Templates;
    return runChecks(FINDINGS, none, paths, NO_SANDBOXES, more).find(({ id }) => id === "clock");
  };
  expect(
    [null, { ahead_ms: null }, { ahead_ms: 0 }, { ahead_ms: -4999 }].map((clock) => checked(clock)?.status),
  ).toEqual(Array(4).fill("ok"));
  expect(checked({ ahead_ms: 61_200 })).toMatchObject({
    status: "warn",
    message: expect.stringContaining("61 s ahead"),
    remedy: expect.stringContaining("NTP"),
  });
  expect(checked({ ahead_ms: -5000 })?.message).toContain("5 s behind");
});
