/** The command line against real guests: typed commands, their output, and their exit statuses. */
import { createHash, randomBytes } from "node:crypto";
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { beforeAll, expect, test } from "vitest";
import type { Json } from "../../harness/daemon.ts";
import { withGuests } from "../../harness/guests.ts";

withGuests("the command line", {}, (guests) => {
  const roomd = (...args: string[]) => guests.daemon.cli(args);
  /** A command that must succeed; its standard output. */
  const done = async (...args: string[]): Promise<string> => {
    const { status, stdout, stderr } = await roomd(...args);
    expect([args, status, stderr]).toEqual([args, 0, stderr]);
    return stdout;
  };
  const json = async (...args: string[]): Promise<Json> => JSON.parse(await done(...args, "--json"));

  beforeAll(async () => {
    await done("room", "create", "cli", "--label", "team=web");
    await done("sandbox", "create", "cli", "worker", "--memory", "256", "--env", "GREETING=hello");
  });

  test("a sandbox gets a free guest_cid by default", async () => {
    const first = await json("sandbox", "get", "cli", "worker");
    expect(first).toMatchObject({ state: "running", memory_mib: 256, env_keys: ["GREETING"] });
    const second = await json("sandbox", "create", "cli", "second", "--memory", "256", "--label", "n=2");
    expect(second).toMatchObject({ agent_id: "second", state: "running", labels: { n: "2" } });
    expect(second.guest_cid).toBeGreaterThanOrEqual(9100);
    expect(second.guest_cid).not.toBe(first.guest_cid);
    const table = await done("sandbox", "list", "cli");
    for (const word of ["AGENT", "worker", "second", String(second.guest_cid), "256 MiB"])
      expect(table).toContain(word);
    expect(await done("sandbox", "destroy", "cli", "second")).toContain("destroyed");
    expect((await json("sandbox", "list", "cli")).items.map((item: Json) => item.agent_id)).toEqual(["worker"]);
  });

  test("exec passes on both streams, and exits with the command's status", async () => {
    const sh = (line: string, ...options: string[]) =>
      roomd("exec", "cli", "worker", ...options, "--", "sh", "-c", line);
    expect(await sh("echo out; echo err >&2; exit 7")).toEqual({ status: 7, stdout: "out\n", stderr: "err\n" });
    expect(await sh("echo $GREETING $MORE; pwd", "--env", "MORE=1", "--cwd", "/tmp")).toMatchObject({
      stdout: "hello 1\n/tmp\n",
    });
    expect((await sh("kill -9 $$")).status).toBe(137);
    expect((await sh("sleep 20", "--timeout", "300ms")).status).toBe(124);
    expect((await roomd("exec", "cli", "worker", "--", "no-such-program")).status).toBe(127);
    expect((await roomd("exec", "cli", "worker", "--", "/etc/passwd")).status).toBe(126);
    const nobody = await roomd("exec", "cli", "nobody", "--", "true");
    expect(nobody).toMatchObject({ status: 125, stdout: "" });
    expect(nobody.stderr).toContain("nobody");
    const whole = JSON.parse((await roomd("exec", "cli", "worker", "--json", "--", "sh", "-c", "exit 3")).stdout);
    expect(whole).toMatchObject({ exit_code: 3, state: "exited" });
  });

  test("exec passes on piped input", async () => {
    const { daemon } = guests;
    const python = await daemon.cli(["exec", "cli", "worker", "--", "python3", "-"], "print(6 * 7)\n");
    expect(python).toEqual({ status: 0, stdout: "42\n", stderr: "" });
    const text = "ü".repeat(1_000_000);
    const wc = await daemon.cli(["exec", "cli", "worker", "--", "wc", "-c"], text);
    expect(wc.stdout).toBe("2000000\n");
  });

  test("exec resumes after a kill of the service, with its input", async () => {
    const { daemon } = guests;
    const line = "for i in 1 2 3 4 5 6; do echo $i; sleep 0.5; done; wc -c; exit 5";
    const started = Promise.withResolvers<void>();
    const args = ["exec", "cli", "worker", "--", "sh", "-c", line];
    const running = daemon.cli(args, "x".repeat(3_000_000), {}, () => started.resolve());
    await started.promise;
    await daemon.end("SIGKILL");
    // The same address, which the client has.
    daemon.env.ROOMD_HTTP_LISTEN = new URL(daemon.url).host;
    await daemon.serve();
    const { status, stdout, stderr } = await running;
    expect([status, stdout]).toEqual([5, "1\n2\n3\n4\n5\n6\n3000000\n"]);
    expect(stderr).toMatch(/^roomd: .*\breconnecting\b/m);
  });

  test("drive put, ls and get transfer files unchanged in both directions", async () => {
    const { daemon } = guests;
    const local = join(daemon.home, "local");
    mkdirSync(local);
    const bytes = randomBytes(3_000_000);
    writeFileSync(join(local, "data.bin"), bytes);
    await done("drive", "put", join(local, "data.bin"), "cli:/in/");
    const digest = createHash("sha256").update(bytes).digest("hex");
    expect(await daemon.sh("cli", "worker", "sha256sum </mnt/drive/in/data.bin")).toBe(`${digest}  -`);
    await daemon.sh("cli", "worker", "mkdir /mnt/drive/out; tac /etc/passwd >/mnt/drive/out/reversed");
    const listed = await done("drive", "ls", "cli", "--recursive");
    for (const word of ["/in/data.bin", "/out/reversed", "directory"]) expect(listed).toContain(word);
    expect((await json("drive", "ls", "cli:/in")).items.map((item: Json) => item.path)).toEqual(["/in/data.bin"]);
    await done("drive", "get", "cli:/in/data.bin", join(local, "back.bin"));
    expect(readFileSync(join(local, "back.bin")).equals(bytes)).toBe(true);
    expect(await done("drive", "get", "cli:/out/reversed", "-")).toBe(
      `${await daemon.sh("cli", "worker", "tac /etc/passwd")}\n`,
    );
    const missing = await roomd("drive", "get", "cli:/no/such", "-");
    expect([missing.status, missing.stdout]).toEqual([1, ""]);
  });

  test("logs prints the guest's console output", async () => {
    await guests.daemon.sh("cli", "worker", "echo said on the console >/dev/console");
    expect(await done("logs", "cli", "worker")).toContain("said on the console\n");
    const { items, next_after } = await json("logs", "cli", "worker");
    expect(items.map((item: Json) => item.line)).toContain("said on the console");
    expect(await done("logs", "cli", "worker", "--after", String(next_after))).toBe("");
  });

  test("audit prints each action with its actor, and verifies the chain", async () => {
    const output = await done("audit", "cli");
    for (const event of ["sandbox.created", "sandbox.destroyed", "exec.finished", "drive.written"])
      expect(output).toContain(event);
    const { items } = await json("audit", "cli", "--event", "sandbox.", "--order", "asc");
    expect(items[0]).toMatchObject({ event: "sandbox.created", agent_id: "worker", outcome: "success" });
    expect(await done("audit", "verify")).toMatch(/\b\d+ to \d+\b/);
  });

  test("a refusal is one line of text, or JSON with --json", async () => {
    const refused = await roomd("sandbox", "create", "cli", "worker");
    expect(refused.status).toBe(1);
    expect(refused.stderr).toMatch(/^roomd: .*\bworker\b/);
    const asJson = await roomd("sandbox", "create", "cli", "worker", "--json");
    expect(JSON.parse(asJson.stderr)).toMatchObject({ code: "agent_id_in_use", status: 409 });
    expect((await roomd("sandbox", "create", "cli")).status).toBe(2);
  });

  test("room destroy ends everything", async () => {
    expect(await done("room", "destroy", "cli", "--delete-drive")).toMatch(/\b1 sandbox\b/);
    expect(guests.daemon.leftovers()).toEqual([]);
    expect((await json("room", "list")).items).toEqual([]);
  });
});
