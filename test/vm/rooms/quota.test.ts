/**
 * A drive's quota, kept against guests that write past the API: also against root, and against space that no name shows. Each
 * cell of the table in daemon/domain/drive/quota/over-quota.ts is tried in a guest.
 */

import { readFileSync } from "node:fs";
import { beforeAll, expect, test } from "vitest";
import { GUEST_MAY } from "../../../daemon/domain/drive/quota/over-quota.ts";
import { TerminalClient } from "../../harness/clients/terminal-client.ts";
import type { Json } from "../../harness/daemon.ts";
import { processesOf, until, withGuests } from "../../harness/guests.ts";

const MIB = 1024 ** 2;
const LIMIT = 1024 * MIB;
const STOPPED = /can read and delete files, but not write/;
const HELD = /blocks until drive calls have deleted enough/;

/** The action of root in a guest for each row of the table, in a separate directory on the drive. */
const DO = {
  read: "cat kept",
  delete: "rm victim",
  write: "printf x | tee -a kept",
  write_beyond_limit: `printf x | dd of=kept bs=1 count=1 seek=${LIMIT} conv=notrunc`,
  allocate: "fallocate -l 1M allocated",
  allocate_beyond_limit: "fallocate -l 2G far",
  allocate_keeping_size: "touch beyond && fallocate -n -l 1M beyond",
  make_holes: "truncate -s 512M holes",
  make_empty_file: "touch empty",
  make_directory: "mkdir directory",
  make_symlink: "ln -s nowhere link",
  make_deep_tree: "mkdir -p $(printf 'd/%.0s' $(seq 300))",
} satisfies Record<keyof typeof GUEST_MAY, string>;

withGuests("a drive's quota", { env: { ROOMD_DRIVE_LIMIT_GIB: "1" } }, (guests) => {
  const record = (room = "greedy") => guests.daemon.ok("GET", `/v1/rooms/${room}`);
  const greedy = (command: string) => guests.daemon.exec("greedy", "it", { command, timeout_ms: 120_000 });
  const untilWarned = (warning: RegExp) =>
    until(`the room has the warning ${warning}`, async () => warning.test((await record()).warnings.join()), 30_000);
  const untilOpen = () => until("the room has no warning", async () => (await record()).warnings.length === 0, 30_000);
  const neighboursWork = async () => {
    expect(await guests.daemon.sh("modest", "it", "date +%N >/mnt/drive/f && wc -l </mnt/drive/f")).toBe("1");
    expect(await guests.daemon.sh("greedy", "it", "hostname")).toBe("it");
  };

  const CALLS = Object.keys(GUEST_MAY) as (keyof typeof GUEST_MAY)[];
  const outcomeOf = ({ exit_code, stderr }: Json) =>
    exit_code === 0 ? "works" : /File too large/.test(stderr) ? "EFBIG" : `${exit_code}: ${stderr}`;
  /** Directories in which everything can be tried; to be made while the drive is open. */
  const makeCells = (...names: string[]) =>
    greedy(names.map((name) => `mkdir /mnt/drive/${name} && cd /mnt/drive/${name} && touch kept victim`).join(" && "));
  const tryCells = async (mode: "open" | "stopped") => {
    const found: Json = {};
    for (const call of CALLS) found[call] = outcomeOf(await greedy(`cd /mnt/drive/${mode} && ${DO[call]}`));
    expect(found).toEqual(Object.fromEntries(CALLS.map((call) => [call, GUEST_MAY[call][mode]])));
  };

  /** Of each process of the room's shares, whether it has been stopped. */
  const stoppedShares = async () => {
    const { items } = await guests.daemon.ok("GET", "/v1/rooms/greedy/sandboxes");
    return items.flatMap(({ sandbox_id }: Json) =>
      processesOf(guests.daemon, "virtiofsd", sandbox_id).map((pid) =>
        /^State:\s+T/m.test(readFileSync(`/proc/${pid}/status`, "utf8")),
      ),
    );
  };

  const refusesWhatNeedsTheDrive = async () => {
    const { daemon } = guests;
    const create = { agent_id: "late", guest_cid: guests.cid(), memory_mib: 256 };
    const refused = await daemon.problem("POST", "/v1/rooms/greedy/sandboxes/from-template", create);
    expect([refused.status, refused.code]).toEqual([507, "drive_full"]);
    expect(refused.hint).toContain("drive/delete");
    expect((await daemon.problem("GET", "/v1/rooms/greedy/sandboxes/late")).code).toBe("sandbox_not_found");
    const exec = "/v1/rooms/greedy/sandboxes/it/exec";
    for (const body of [
      { command: "true", cwd: "/mnt/drive" },
      { command: "true", cwd: "/root/../mnt//drive/" },
      { argv: ["/mnt/drive/program"] },
      { command: "true", output_to: "saved" },
    ]) {
      const problem = await daemon.problem("POST", exec, body);
      expect([body, problem.code, problem.details.started]).toEqual([body, "drive_full", expect.anything()]);
      expect(problem.details.started).not.toBe(true);
    }
    const terminals = "/v1/rooms/greedy/sandboxes/it/terminals";
    const size = { rows: 24, cols: 80 };
    for (const more of [{ cwd: "/mnt/drive" }, { cwd: "/mnt/./drive/" }, { argv: ["/mnt/drive/program"] }]) {
      const problem = await daemon.problem("POST", terminals, { ...size, ...more });
      expect([more, problem.status, problem.code]).toEqual([more, 507, "drive_full"]);
    }
    // A terminal that does not use the drive works as usual.
    const client = await TerminalClient.attach(daemon, (await daemon.ok("POST", terminals, size)).ws_path);
    client.type("echo $((6 * 7)); exit\r");
    await client.shows("42\r\n");
    expect((await client.closed).code).toBe(1000);
  };

  const standsStillAndGoesOn = async () => {
    const { daemon } = guests;
    expect(await stoppedShares()).not.toContain(false);
    expect((await daemon.ok("POST", "/v1/rooms/greedy/sandboxes/second/standby")).state).toBe("paused");
    expect(await stoppedShares()).not.toContain(false);
    expect((await daemon.ok("POST", "/v1/rooms/greedy/sandboxes/second/resume")).state).toBe("running");
    expect(await stoppedShares()).not.toContain(false);
    expect(await daemon.sh("greedy", "second", "hostname")).toBe("second");
  };

  beforeAll(async () => {
    for (const room of ["greedy", "modest"]) {
      await guests.daemon.room(room);
      await guests.daemon.sandbox(room, "it", guests.cid());
    }
    await guests.daemon.sandbox("greedy", "second", guests.cid());
  });

  test("stops a guest's writes with a warning, and allows reads and deletions, after which it may write again", async () => {
    const { daemon } = guests;
    await greedy("fallocate -l 1000M /mnt/drive/base && echo kept >/mnt/drive/kept");
    expect((await record()).drive.used_bytes).toBeLessThan(LIMIT);
    // Far more than fits, in small pieces: it must end without intervention.
    const filling = await greedy(
      "i=0; while head -c 1M /dev/zero >>/mnt/drive/more && [ $i -lt 3000 ]; do i=$((i+1)); sleep 0.04; done; echo $i",
    );
    expect(filling.stderr).toMatch(/File too large/);
    expect(Number(filling.stdout)).toBeLessThan(3000);
    await untilWarned(STOPPED);
    const { used_bytes } = (await record()).drive;
    console.log(
      `a guest that writes 1 MiB at a time exceeded a quota of 1 GiB by ${Math.round((used_bytes - LIMIT) / MIB)} MiB`,
    );
    expect(used_bytes).toBeGreaterThanOrEqual(LIMIT);
    const body = { path: "api", content: "x" };
    const refused = await daemon.problem("POST", "/v1/rooms/greedy/drive/write", body);
    expect([refused.status, refused.code]).toEqual([507, "drive_full"]);
    expect(refused.details).toMatchObject({ limit_bytes: LIMIT });
    // A guest that comes later, and the daemon's next run, are no way around it.
    const second = { command: "echo >>/mnt/drive/new" };
    await until(
      "the second guest is stopped too",
      async () => (await daemon.exec("greedy", "second", second)).exit_code,
    );
    await neighboursWork();
    expect((await greedy("cat /mnt/drive/kept; echo over | tee /mnt/drive/kept")).stderr).toMatch(/File too large/);
    await daemon.restart("SIGKILL");
    await untilWarned(STOPPED);
    expect((await greedy("echo | tee /mnt/drive/new")).stderr).toMatch(/File too large/);
    expect((await greedy("rm /mnt/drive/base && ls /mnt/drive")).stdout).toContain("kept");
    await untilOpen();
    expect((await greedy("echo again >/mnt/drive/kept && cat /mnt/drive/kept")).stdout).toBe("again\n");
    await daemon.ok("POST", "/v1/rooms/greedy/drive/write", body);
    const events = await daemon.ok("GET", "/v1/rooms/greedy/audit?event=quota.&order=asc");
    const seen = events.items.map(({ event }: Json) => event);
    expect(seen).toContain("quota.drive_stopped");
    expect(seen.at(-1)).toBe("quota.drive_open");
    await greedy("rm /mnt/drive/*");
  });

  test("counts deleted files that are still open", async () => {
    const { daemon } = guests;
    const script =
      "exec 3>/mnt/drive/gone; rm /mnt/drive/gone; fallocate -l 1024M /proc/self/fd/3; touch /dev/shm/hidden; while [ ! -e /dev/shm/let-go ]; do sleep 0.1; done";
    await daemon.sh("greedy", "it", `sh -c '${script}' >/dev/null 2>&1 &`);
    await until("the deleted file has grown", async () =>
      (await greedy("ls /dev/shm /mnt/drive")).stdout.includes("hidden"),
    );
    await untilWarned(STOPPED);
    expect((await record()).drive.file_count).toBe(0);
    expect((await record()).drive.used_bytes).toBeGreaterThanOrEqual(LIMIT);
    await greedy("touch /dev/shm/let-go");
    await untilOpen();
    await greedy("rm -f /mnt/drive/*");
  });

  test("allows an unrestricted guest everything in the table", async () => {
    await makeCells("open");
    await tryCells("open");
    expect((await record()).warnings).toEqual([]);
    await greedy("rm -rf /mnt/drive/open");
  });

  test("freezes a drive immediately if one call has far exceeded the quota", async () => {
    const { daemon } = guests;
    await greedy("touch /mnt/drive/beyond && fallocate -n -l 1200M /mnt/drive/beyond");
    await untilWarned(HELD);
    await daemon.ok("DELETE", "/v1/rooms/greedy/drive/delete?path=beyond");
    await untilOpen();
    const { items } = await daemon.ok("GET", "/v1/rooms/greedy/audit?event=quota.&order=asc");
    expect(items.slice(-2).map(({ event }: Json) => event)).toEqual(["quota.drive_held", "quota.drive_open"]);
  });

  test("freezes a drive that guest root grows despite the stop, until drive calls free space", async () => {
    const { daemon } = guests;
    await makeCells("stopped", "held");
    await greedy("fallocate -l 1024M /mnt/drive/base");
    await untilWarned(STOPPED);
    await tryCells("stopped");
    // Space beyond a file's end needs no write.
    const grow =
      "for n in $(seq 60); do [ -e /dev/shm/enough ] && exit; touch /mnt/drive/x$n; fallocate -n -l 32M /mnt/drive/x$n; sleep 0.3; done";
    await daemon.sh("greedy", "it", `(${grow}) >/dev/null 2>&1 &`);
    await untilWarned(HELD);
    const cells = CALLS.map((call) => `(cd /mnt/drive/held; ${DO[call]}; echo ${call} >>/dev/shm/answered) &`);
    await daemon.sh("greedy", "it", `touch /dev/shm/answered; (${cells.join(" ")}) >/dev/null 2>&1`);
    await neighboursWork();
    expect((await daemon.ok("GET", "/v1/rooms/greedy/drive/stat?path=base")).size_bytes).toBe(LIMIT);
    expect(await daemon.sh("greedy", "it", "cat /dev/shm/answered")).toBe("");
    await refusesWhatNeedsTheDrive();
    await standsStillAndGoesOn();
    await daemon.ok("DELETE", "/v1/rooms/greedy/sandboxes/second");
    expect((await record()).warnings.join()).toMatch(HELD);
    await daemon.restart("SIGKILL");
    expect(await daemon.sh("greedy", "it", "hostname")).toBe("it");
    expect((await record()).warnings).not.toEqual([]);
    const { used_bytes } = (await record()).drive;
    console.log(
      `a guest that grew its drive by other means was frozen ${Math.round((used_bytes - LIMIT) / MIB)} MiB above it`,
    );
    await daemon.sh("greedy", "it", "touch /dev/shm/enough");
    await daemon.ok("DELETE", "/v1/rooms/greedy/drive/delete?path=base");
    await untilOpen();
    await until(
      "the guest continues",
      async () => {
        const { stdout } = await greedy("sort /dev/shm/answered");
        return stdout.trim() === CALLS.toSorted().join("\n");
      },
      120_000,
    );
    const on = await greedy("echo on >/mnt/drive/on && cat /mnt/drive/on");
    expect([on.stdout, on.stderr]).toEqual(["on\n", ""]);
  }, 300_000);

  test("above its limit does not prevent the deletion of a sandbox or room", async () => {
    const { daemon } = guests;
    await greedy("rm -rf /mnt/drive/*; fallocate -l 1024M /mnt/drive/base");
    await untilWarned(STOPPED);
    await daemon.ok("DELETE", "/v1/rooms/greedy?drive=delete");
    expect(daemon.leftovers().filter((line) => line.includes("process")).length).toBeGreaterThan(0);
    await daemon.ok("DELETE", "/v1/rooms/modest?drive=delete");
    expect(daemon.leftovers()).toEqual([]);
  });
});
