/**
 * The SDK with real guests: commands that run once and return their complete output, whatever happens to the connection and the service.
 */
import { afterAll, beforeAll, expect, test } from "vitest";
import { ProblemError, Roomd, Sandbox } from "../../../sdk/typescript/src/index.ts";
import { LONG, until, withGuests } from "../../harness/guests.ts";
import { UnreliableProxy } from "../../harness/hosts/unreliable-proxy.ts";

const ROOM = "by-sdk";
/** In the short run, one of this many bytes. */
const SOME = 13;

withGuests("the SDK", {}, (guests) => {
  let proxy: UnreliableProxy;
  /** By way of the proxy. */
  let roomd: Roomd;
  let sandbox: Sandbox;
  beforeAll(async () => {
    proxy = new UnreliableProxy(() => guests.daemon.url);
    roomd = new Roomd({ url: await proxy.listen(), apiKey: guests.daemon.apiKey });
    const room = await roomd.rooms.create({ roomId: ROOM });
    sandbox = await room.createSandbox("worker", { memoryMib: 256 });
  });
  afterAll(() => {
    roomd.close();
    proxy.close();
  });

  /** How often the command has started. */
  const startCount = async (file: string) => (await roomd.rooms.open(ROOM).drive.readText(file)).split("\n").length - 1;

  test("runs a command with its output, exit code and input", async () => {
    const chunks: string[] = [];
    const done = await sandbox.exec("cat; echo $WORD; echo wrong >&2; exit 3", {
      stdin: "said\n",
      env: { WORD: "word" },
      onStdout: (text) => chunks.push(text),
    });
    expect(done).toMatchObject({
      stdout: "said\nword\n",
      stderr: "wrong\n",
      exitCode: 3,
      signal: null,
      timedOut: false,
    });
    expect(chunks.join("")).toBe(done.stdout);
    expect((await sandbox.exec(["printf", "%s|", "a b", "c"])).stdout).toBe("a b|c|");
    expect(await sandbox.exec("sleep 60", { commandTimeoutMs: 300 })).toMatchObject({ timedOut: true });
    await expect(sandbox.exec("true", { cwd: "/none" })).rejects.toMatchObject({ code: "cwd_not_found" });
  });

  test("closes the input if none is given, and truncates output above the limit", async () => {
    expect(await sandbox.exec("cat; echo end", { timeoutMs: 20_000 })).toMatchObject({ stdout: "end\n" });
    const long = await sandbox.exec("head -c 40000000 /dev/zero | tr '\\0' x; exit 4", { maxOutputBytes: 1000 });
    expect([long.exitCode, long.stdout.length, long.stdoutTruncated, long.stderrTruncated]).toEqual([
      ...[4, 1000],
      true,
      false,
    ]);
    await expect(sandbox.exec("sleep 60", { waitMs: 500 })).rejects.toMatchObject({ name: "TimeoutError" });
    const path = "/root/-odd name";
    await sandbox.files.write(path, "odd\n");
    expect(await sandbox.files.readText(path)).toBe("odd\n");
    expect((await sandbox.files.stat(path)).size_bytes).toBe(4);
    async function* source(): AsyncGenerator<Uint8Array> {
      yield new Uint8Array(3);
      throw new Error("the disk is gone");
    }
    await expect(sandbox.files.write("/root/never", source())).rejects.toThrow("the disk is gone");
  });

  test("writes to a running command, and kills it", async () => {
    const running = await sandbox.start('while read -r line; do echo "got $line"; done; echo end');
    await running.write("one\n");
    await running.write("two\n");
    await running.end();
    expect((await running.wait()).stdout).toBe("got one\ngot two\nend\n");
    const left = await sandbox.start("sleep 600 & sleep 600");
    expect((await left.kill()).state).toBe("exited");
    const ended = new AbortController();
    const waiting = sandbox.exec("echo here; sleep 600", {
      signal: ended.signal,
      killOnAbort: true,
      execId: "aborted",
      onStdout: () => ended.abort(),
    });
    await expect(waiting).rejects.toMatchObject({ name: "AbortError" });
    expect(await sandbox.execution("aborted").get()).toMatchObject({ state: "exited", timed_out: false });
  });

  test("cut at any byte of a command's stream, loses and duplicates nothing, and runs once", {
    timeout: 300_000,
  }, async () => {
    const command = "echo begun >>/mnt/drive/cut; for n in 1 2 3 4 5 6; do echo out $n; echo err $n >&2; done; exit 7";
    const execution = await sandbox.start(command, { execId: "cut" });
    const whole = await execution.wait();
    expect(whole).toMatchObject({ exitCode: 7, stdout: "out 1\nout 2\nout 3\nout 4\nout 5\nout 6\n" });
    const answer = await fetch(`${guests.daemon.url}/v1/rooms/${ROOM}/sandboxes/worker/executions/cut/stream`, {
      headers: { Authorization: `Bearer ${guests.daemon.apiKey}`, Accept: "application/x-ndjson" },
    });
    const { byteLength } = await answer.arrayBuffer();
    for (let at = 0; at <= byteLength; at += LONG ? 1 : SOME) {
      let left = 1;
      proxy.fault = () => (left-- > 0 ? { cutAfterBytes: at } : null);
      const { stdout, stderr, exitCode } = await execution.wait();
      expect([at, stdout, stderr, exitCode]).toEqual([at, whole.stdout, whole.stderr, 7]);
    }
    proxy.fault = () => null;
    expect(await startCount("/cut")).toBe(1);
  });

  test.each(["refused", "answer_lost"] as const)("a start whose call is %s runs once", async (fault) => {
    let left = 2;
    proxy.fault = ({ method }) => (method === "POST" && left-- > 0 ? fault : null);
    const { stdout } = await sandbox.exec(`echo begun >>/mnt/drive/${fault}; echo done`);
    proxy.fault = () => null;
    expect(stdout).toBe("done\n");
    expect(await startCount(`/${fault}`)).toBe(1);
  });

  test("resumes a command's output after a kill of the daemon", { timeout: 120_000 }, async () => {
    const command = "echo begun >>/mnt/drive/killed; for n in $(seq 40); do echo line $n; sleep 0.1; done";
    let output = "";
    const running = sandbox.exec(command, {
      onStdout: (text) => {
        output += text;
      },
    });
    await until("the command has started", () => output.includes("line 3\n"));
    await guests.daemon.restart("SIGKILL");
    const { stdout, exitCode } = await running;
    expect(stdout).toBe(Array.from({ length: 40 }, (_, index) => `line ${index + 1}\n`).join(""));
    expect([exitCode, output]).toEqual([0, stdout]);
    expect(await startCount("/killed")).toBe(1);
  });

  test("opens a terminal", async () => {
    // The proxy does not support WebSockets.
    const direct = new Roomd({ url: guests.daemon.url, apiKey: guests.daemon.apiKey });
    const terminal = await direct.rooms.open(ROOM).sandbox("worker").openTerminal({ command: "cat" });
    const attached = await terminal.attach();
    attached.write("typed\n");
    let shown = "";
    for await (const bytes of attached.output) {
      shown += Buffer.from(bytes).toString();
      // Once from the echo, and once from cat.
      if (shown.split("typed").length > 2) break;
    }
    attached.close();
    expect((await terminal.end()).state).toBe("ended");
    direct.close();
  });

  test("snapshots, forks and rolls back a sandbox", { timeout: 240_000 }, async () => {
    await sandbox.exec("echo before >/root/state");
    const { snapshot_id } = await sandbox.snapshot();
    await sandbox.exec("echo after >/root/state");
    const [other] = await sandbox.fork(["copy"]);
    if (!other) throw new Error("there is no copy");
    expect(other.state).toBe("running");
    expect((await other.exec("cat /root/state; hostname")).stdout).toBe("after\ncopy\n");
    await other.destroy();
    await sandbox.rollback(snapshot_id);
    expect((await sandbox.exec("cat /root/state")).stdout).toBe("before\n");
  });

  test("creates a room from one, and ends both", { timeout: 120_000 }, async () => {
    let roomId: string;
    {
      await using standalone = await Sandbox.create({
        url: guests.daemon.url,
        apiKey: guests.daemon.apiKey,
        memoryMib: 256,
      });
      roomId = standalone.roomId;
      expect((await standalone.exec("echo alone")).stdout).toBe("alone\n");
    }
    await expect(roomd.rooms.open(roomId).get()).rejects.toBeInstanceOf(ProblemError);
  });
});
