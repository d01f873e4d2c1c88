/** Running commands in a real guest: outcome, streams, ends and limits. */
import { createHash, randomBytes } from "node:crypto";
import { beforeAll, describe, expect, test } from "vitest";
import type { Json } from "../harness/daemon.ts";
import { processesOf, until, untilState, withGuests } from "../harness/guests.ts";

const MIB = 1024 * 1024;
const sha256 = (bytes: Uint8Array) => createHash("sha256").update(bytes).digest("hex");

withGuests("commands", {}, (guests) => {
  const path = (sandbox: string) => `/v1/rooms/exec/sandboxes/${sandbox}`;
  const exec = (body: Record<string, unknown>): Promise<Json> => guests.daemon.exec("exec", "it", body);
  const sh = (line: string) => guests.daemon.sh("exec", "it", line);
  const refused = (body: Record<string, unknown>) => guests.daemon.problem("POST", `${path("it")}/exec`, body);
  /** How many processes of the guest have this command line. */
  const alive = async (pattern: string) => Number((await exec({ argv: ["pgrep", "-c", "-f", "-x", pattern] })).stdout);
  /** The file's content on the drive, or null. */
  const onDrive = async (file: string): Promise<string | null> => {
    const { status, body } = await guests.daemon.api("GET", `/v1/rooms/exec/drive/read?path=${file}`);
    return status === 200 ? body.content : null;
  };

  beforeAll(async () => {
    await guests.daemon.room("exec");
    await guests.daemon.sandbox("exec", "it", guests.cid(), { memory_mib: 512, env: { FROM: "sandbox", KEPT: "yes" } });
  });

  test("argv is passed word by word, command is a shell line", async () => {
    const words = ["", "a b", "$HOME", "*", "'\"", "-n", "ü\n", "--"];
    const script = "import sys, json; print(json.dumps(sys.argv[1:]))";
    expect(JSON.parse((await exec({ argv: ["python3", "-c", script, ...words] })).stdout)).toEqual(words);
    expect((await exec({ command: "echo $((6 * 7)) | tr 4 5" })).stdout).toBe("52\n");
    const done = await exec({ argv: ["true"] });
    expect(done).toMatchObject({
      state: "exited",
      exit_code: 0,
      signal: null,
      timed_out: false,
      stdout: "",
      stderr: "",
    });
    expect(done.exec_id).toMatch(/^exe_/);
    expect(Date.parse(done.finished_at) - Date.parse(done.started_at)).toBe(done.duration_ms);
  });

  test("every kind of end is reported: exit code, not found, not executable, signal", async () => {
    expect(await exec({ command: "exit 3" })).toMatchObject({ exit_code: 3, signal: null });
    expect(await exec({ argv: ["no-such-program"] })).toMatchObject({ exit_code: 127, signal: null });
    expect(await exec({ argv: ["/no/such/program"] })).toMatchObject({ exit_code: 127 });
    expect(await exec({ argv: ["/etc/passwd"] })).toMatchObject({ exit_code: 126 });
    expect(await exec({ argv: ["/etc"] })).toMatchObject({ exit_code: 126 });
    expect(await exec({ command: "no-such-program" })).toMatchObject({ exit_code: 127 });
    expect(await exec({ command: "kill -SEGV $$" })).toMatchObject({
      exit_code: null,
      signal: "SIGSEGV",
      timed_out: false,
    });
    expect(await exec({ command: "kill -9 $$" })).toMatchObject({ exit_code: null, signal: "SIGKILL" });
  });

  test("the streams are separate, and binary output is preserved", async () => {
    expect(await exec({ command: "echo out; echo err >&2" })).toMatchObject({ stdout: "out\n", stderr: "err\n" });
    const binary = await exec({ command: "printf '\\377\\000\\n'; printf ok >&2" });
    expect(binary).toMatchObject({
      stdout: null,
      stdout_b64: "/wAK",
      stdout_bytes: 3,
      stderr: "ok",
      stderr_b64: "b2s=",
    });
  });

  test("output over the limit is truncated, counted and reported", async () => {
    const cut = await exec({ command: "seq 1000; printf 12345 >&2", max_output_bytes: 10 });
    expect(cut).toMatchObject({ stdout: "1\n2\n3\n4\n5\n", stdout_bytes: 3893, stdout_truncated: true });
    expect(cut).toMatchObject({ stderr: "12345", stderr_bytes: 5, stderr_truncated: false });
    expect(await exec({ command: "printf 12345", max_output_bytes: 5 })).toMatchObject({ stdout_truncated: false });
    expect(await exec({ command: "echo", max_output_bytes: 0 })).toMatchObject({ stdout: "", stdout_truncated: true });
    // A flood goes by without being kept.
    const flood = await exec({ command: `head -c ${16 * MIB} /dev/zero` });
    expect(flood).toMatchObject({ exit_code: 0, stdout_bytes: 16 * MIB, stdout_truncated: true });
    expect(Buffer.from(flood.stdout_b64, "base64").length).toBe(MIB);
  });

  test("standard input arrives completely: none, text, bytes, 8 MiB", async () => {
    expect(await exec({ argv: ["cat"] })).toMatchObject({ exit_code: 0, stdout: "" });
    expect(await exec({ argv: ["cat"], stdin: "süß\n" })).toMatchObject({ stdout: "süß\n" });
    expect(await exec({ argv: ["cat"], stdin_b64: "/wAK" })).toMatchObject({ stdout_b64: "/wAK" });
    const bytes = randomBytes(8 * MIB);
    const digest = await exec({ argv: ["sha256sum"], stdin_b64: bytes.toString("base64"), timeout_ms: 60_000 });
    expect(digest.stdout).toBe(`${sha256(bytes)}  -\n`);
    // A command that does not read it is not harmed by it, and nothing waits for it to be read.
    expect(await exec({ argv: ["true"], stdin_b64: bytes.toString("base64") })).toMatchObject({ exit_code: 0 });
    const over = randomBytes(8 * MIB + 1).toString("base64");
    expect(await refused({ argv: ["cat"], stdin_b64: over })).toMatchObject({ status: 422, code: "validation_failed" });
  });

  test("8 MiB of output arrive completely", async () => {
    const script = "head -c 8388608 /dev/urandom | tee /tmp/bytes; sha256sum </tmp/bytes >&2";
    const done = await exec({ command: script, max_output_bytes: 8 * MIB, timeout_ms: 60_000 });
    expect(done).toMatchObject({ stdout: null, stdout_bytes: 8 * MIB, stdout_truncated: false });
    expect(done.stderr).toBe(`${sha256(Buffer.from(done.stdout_b64, "base64"))}  -\n`);
  });

  test("the environment is the sandbox's, overridden by the command's", async () => {
    const printed = "printf '%s ' $FROM $KEPT $NEW";
    expect((await exec({ command: printed, env: { FROM: "exec", NEW: "1" } })).stdout).toBe("exec yes 1 ");
    expect((await exec({ command: printed })).stdout).toBe("sandbox yes ");
    expect((await refused({ command: "true", env: { ROOMD_AGENT_ID: "x" } })).code).toBe("reserved_env_key");
  });

  test("the requested user runs it", async () => {
    const line = "id -un; id -gn; echo $HOME $USER; pwd; touch /etc/mine 2>/dev/null || echo kept out";
    const asAgent = "agent\nagent\n/home/agent agent\n/home/agent\nkept out\n";
    expect((await exec({ command: line, user: "agent" })).stdout).toBe(asAgent);
    expect((await exec({ command: line, user: "1000" })).stdout).toBe(asAgent);
    expect((await exec({ command: "id -un; pwd" })).stdout).toBe("root\n/root\n");
    expect((await exec({ command: "echo mine >/mnt/drive/of-agent", user: "agent" })).exit_code).toBe(0);
    const unknown = await refused({ command: "true", user: "nobody-here" });
    expect(unknown).toMatchObject({ status: 422, errors: [{ field: "user" }] });
  });

  test("it runs in the requested directory, which must exist", async () => {
    expect((await exec({ argv: ["pwd"], cwd: "/usr/share" })).stdout).toBe("/usr/share\n");
    for (const cwd of ["/no/such/directory", "/etc/passwd"]) {
      expect(await refused({ argv: ["pwd"], cwd })).toMatchObject({ status: 422, code: "cwd_not_found" });
    }
    expect(await refused({ argv: ["pwd"], cwd: "usr" })).toMatchObject({ status: 422 });
  });

  // Side by side, since most of it is waiting.
  describe.concurrent("the end", () => {
    test("at the timeout includes the whole process group", async () => {
      const late = await exec({ command: "sleep 7771 & sleep 7771", timeout_ms: 500 });
      expect(late).toMatchObject({ timed_out: true, exit_code: null, signal: null });
      // By TERM, not by KILL five seconds later.
      expect(late.duration_ms).toBeLessThan(5_500);
      await until("the process group has exited", async () => (await alive("sleep 7771")) === 0, 5_000);
      const result = await exec({ command: "echo kept; echo told >&2; sleep 7772", timeout_ms: 1_500 });
      expect(result).toMatchObject({ timed_out: true, stdout: "kept\n", stderr: "told\n" });
    });

    test("is by SIGKILL after five seconds for a process that ignores SIGTERM, or for its descendants", async () => {
      const [stubborn, obedient] = await Promise.all([
        exec({ command: "trap '' TERM; while :; do sleep 0.2; done", timeout_ms: 1_500 }),
        exec({ command: "(trap '' TERM; exec sleep 7773) & exec sleep 7774", timeout_ms: 1_500 }),
      ]);
      expect(stubborn).toMatchObject({ timed_out: true, exit_code: null });
      expect(stubborn.duration_ms).toBeGreaterThanOrEqual(6_500);
      expect(stubborn.duration_ms).toBeLessThan(11_000);
      expect(obedient).toMatchObject({ timed_out: true });
      expect(obedient.duration_ms).toBeLessThan(6_000);
      await until("the background process has exited", async () => (await alive("sleep 7773")) === 0, 10_000);
    });

    test("does not wait for background processes", async () => {
      const done = await exec({ command: "(sleep 7775; echo late) & echo now" });
      expect(done).toMatchObject({ exit_code: 0, stdout: "now\n" });
      // The answer has come while the background process runs.
      expect(await alive("sleep 7775")).toBe(1);
      await sh("pkill -f '[s]leep 7775'");
    });
  });

  test("an exec_id belongs to one command while it runs", async () => {
    const first = exec({
      exec_id: "mine",
      command: "until [ -e /mnt/drive/mine-go ]; do sleep 0.05; done; echo first",
    });
    const second = await until("the second is refused", async () => {
      const answer = await guests.daemon.api("POST", `${path("it")}/exec`, { exec_id: "mine", argv: ["true"] });
      return answer.status === 409 && answer.body;
    });
    expect(second.code).toBe("exec_id_in_use");
    await sh("touch /mnt/drive/mine-go");
    expect(await first).toMatchObject({ exec_id: "mine", stdout: "first\n" });
  });

  test("20 concurrent commands get their own answers", async () => {
    const numbers = Array.from({ length: 20 }, (_, index) => index);
    const answers = await Promise.all(
      numbers.map((number) => exec({ command: `sleep 0.2; echo ${number}; exit ${number}` })),
    );
    expect(answers.map(({ stdout }) => Number(stdout))).toEqual(numbers);
    expect(answers.map(({ exit_code }) => exit_code)).toEqual(numbers);
  });

  test("64 can run concurrently, the next gets a retryable refusal", async () => {
    await sh("mkfifo /tmp/gate; rm -f /mnt/drive/go /mnt/drive/waiting");
    const waiting = Array.from({ length: 63 }, () => exec({ argv: ["cat", "/tmp/gate"], timeout_ms: 120_000 }));
    // The last one counts them, and opens the gate on request.
    const line = "until [ -e /mnt/drive/go ]; do pgrep -c -x cat >/mnt/drive/waiting; sleep 0.2; done; : >/tmp/gate";
    waiting.push(exec({ command: line, timeout_ms: 120_000 }));
    await until("63 commands wait", async () => Number(await onDrive("waiting")) === 63, 60_000);
    const { daemon } = guests;
    const refusedOne = await daemon.api("POST", `${path("it")}/exec`, { argv: ["true"] });
    expect([refusedOne.status, refusedOne.body.code]).toEqual([429, "too_many_executions"]);
    expect(Number(refusedOne.headers.get("retry-after"))).toBeGreaterThan(0);
    await daemon.ok("POST", "/v1/rooms/exec/drive/write", { path: "go", content: "" });
    const codes = (await Promise.all(waiting)).map(({ exit_code }) => exit_code);
    expect(codes).toEqual(Array.from({ length: 64 }, () => 0));
    expect(await exec({ argv: ["true"] })).toMatchObject({ exit_code: 0 });
  });

  test("a disconnected client does not end the command", async () => {
    const leaving = new AbortController();
    const { daemon } = guests;
    const call = fetch(`${daemon.url}${path("it")}/exec`, {
      method: "POST",
      headers: { authorization: `Bearer ${daemon.apiKey}`, "content-type": "application/json" },
      body: JSON.stringify({
        command:
          "touch /mnt/drive/began; until [ -e /mnt/drive/left ]; do echo; sleep 0.1; done; echo whole >/mnt/drive/ended",
      }),
      signal: leaving.signal,
    });
    await until("the command has started", async () => (await onDrive("began")) !== null);
    leaving.abort();
    await expect(call).rejects.toThrow();
    await daemon.ok("POST", "/v1/rooms/exec/drive/write", { path: "left", content: "" });
    expect(await until("the command has ended", async () => (await onDrive("ended")) || null)).toBe("whole\n");
  });

  test("output_to saves both streams completely on the drive", async () => {
    const script = "seq 500000; printf problem >&2; exit 4";
    const done = await exec({ command: script, output_to: "/runs/one", max_output_bytes: 100 });
    expect(done).toMatchObject({ exit_code: 4, stdout_truncated: true });
    expect(done.stdout.length).toBe(100);
    const saved = await guests.daemon.api("GET", "/v1/rooms/exec/drive/files/runs/one/stdout");
    expect(saved.body.length).toBe(done.stdout_bytes);
    expect(saved.body.endsWith("\n500000\n")).toBe(true);
    expect(await onDrive("runs/one/stderr")).toBe("problem");
    expect(await sh("tail -n 1 /mnt/drive/runs/one/stdout")).toBe("500000");
    const side = { command: "touch /mnt/drive/side-effect", output_to: "../x" };
    expect((await refused(side)).code).toBe("invalid_path");
    expect(await onDrive("side-effect")).toBeNull();
  });

  test("an argument may be as long as the kernel allows", async () => {
    const long = "x".repeat(120 * 1024);
    expect((await exec({ argv: ["printf", "%s", long] })).stdout).toBe(long);
    // Linux takes 128 KiB for one argument: the shell's own answer to more.
    const tooLong = await exec({ argv: ["echo", "x".repeat(MIB)] });
    expect(tooLong).toMatchObject({ exit_code: 126 });
    expect(tooLong.stderr).toContain("Argument list too long");
    const many = Array.from({ length: 1000 }, () => "y".repeat(1000));
    expect((await exec({ argv: ["printf", "%s", ...many] })).stdout_bytes).toBe(1_000_000);
  });

  test("no zombie remains, whoever its parent was", async () => {
    const orphans = "for i in 1 2 3 4 5 6 7 8; do (sleep 0.1 & exec true) & (true & exec sleep 0.2) & done; true";
    await Promise.all([1, 2, 3].map(() => exec({ command: orphans })));
    const zombies = async () => (await exec({ command: "ps -eo stat=,pid=,ppid=,args= | grep ^Z" })).stdout;
    await until("all zombies are reaped", async () => (await zombies()) === "");
  });

  test("process 1 survives signals that would end other processes", async () => {
    const identity = () => sh("cat /etc/machine-id /proc/sys/kernel/hostname");
    const before = await identity();
    const signals = "KILL STOP TERM INT HUP QUIT USR1 USR2 PIPE ALRM IO URG CHLD";
    // Several times: they interrupt its console messages about them.
    const line = `for round in 1 2 3; do for s in ${signals}; do kill -$s 1; done; done; echo sent`;
    const sent = await exec({ exec_id: "signals", command: line });
    expect(sent.stdout).toBe("sent\n");
    expect(await sh("cat /proc/1/comm; echo alive")).toMatch(/alive$/);
    // They lose no state of the sandbox: its identity, and the record of commands that have run.
    expect(await identity()).toBe(before);
    expect(await exec({ exec_id: "signals", command: line })).toEqual(sent);
    expect((await guests.daemon.ok("GET", path("it"))).state).toBe("running");
  });

  test("a command in a failed or destroyed sandbox is refused", async () => {
    const { daemon } = guests;
    const { sandbox_id } = await daemon.sandbox("exec", "doomed", guests.cid());
    for (const pid of processesOf(daemon, "qemu", sandbox_id)) process.kill(pid, "SIGKILL");
    await untilState(daemon, "exec", "doomed", "failed");
    expect(await daemon.problem("POST", `${path("doomed")}/exec`, { argv: ["true"] })).toMatchObject({
      status: 409,
      code: "invalid_state",
      details: { state: "failed", allowed_states: ["running"] },
    });
    await daemon.ok("DELETE", path("doomed"));
    const problem = await daemon.problem("POST", `${path("doomed")}/exec`, { argv: ["true"] });
    expect(problem).toMatchObject({ status: 404, code: "sandbox_not_found" });
  });
});
