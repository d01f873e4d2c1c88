/** Roomd as a sandbox client of the OpenAI Agents SDK, with real guests: each method of a session, and runs of a scripted model. */
import { mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type AgentInputItem, Runner, RunState, tool } from "@openai/agents-core";
import { Manifest, SandboxAgent, shell } from "@openai/agents-core/sandbox";
import { assistantMessage, functionCall, ScriptedModel, type ScriptedModelResponse } from "@openai/agents-core/testing";
import { afterAll, beforeAll, expect, test } from "vitest";
import { Roomd } from "../../../sdk/typescript/src/index.ts";
import { RoomdSandboxClient, type RoomdSandboxSession } from "../../../sdk/typescript/src/openai-agents.ts";
import { until, withGuests } from "../../harness/guests.ts";

type Step = Extract<ScriptedModelResponse, readonly unknown[]>[number];

const runner = new Runner({ tracingDisabled: true });
const DONE: Step[] = [assistantMessage("It is done.")];
let calls = 0;

const command = (cmd: string, more: Record<string, unknown> = {}): Step[] => [
  functionCall("exec_command", { cmd, ...more }, { callId: `call-${++calls}` }),
];
const patch = (type: "create_file" | "update_file", path: string, diff: string): Step[] => [
  { type: "apply_patch_call", callId: `call-${++calls}`, status: "completed", operation: { type, path, diff } },
];

/** The results of its calls that the model has received by the end. */
function answersOf(model: ScriptedModel): string[] {
  const input = (model.lastCall?.request.input ?? []) as AgentInputItem[];
  return input.flatMap((item) => (/_(result|output)$/.test(item.type ?? "") ? [JSON.stringify(item)] : []));
}

withGuests("the OpenAI Agents SDK", {}, (guests) => {
  let roomd: Roomd;
  let client: RoomdSandboxClient;
  const make = (more = {}) =>
    new RoomdSandboxClient({ url: guests.daemon.url, apiKey: guests.daemon.apiKey, memoryMib: 256, ...more });
  /** The rooms that there are, which sessions have made. */
  async function roomsLeft(): Promise<string[]> {
    const left = [];
    for await (const { room_id } of roomd.client.items("room_list", {
      state: "active",
      label: "made_by:openai-agents",
    }))
      left.push(room_id);
    return left;
  }
  beforeAll(() => {
    roomd = new Roomd({ url: guests.daemon.url, apiKey: guests.daemon.apiKey });
    client = make();
  });
  afterAll(() => roomd.close());

  test("provides the environment of a model's tools; its sandbox ends with the run", { timeout: 120_000 }, async () => {
    const model = new ScriptedModel([
      command("pwd; echo $WORD; echo wrong >&2; exit 3"),
      patch("create_file", "answer.py", "+print(6 * 7)\n+print('end')"),
      patch("update_file", "answer.py", "@@\n-print(6 * 7)\n+print(6 * 8)\n print('end')"),
      command("python3 answer.py"),
      command("read -r line; echo got $line", { yield_time_ms: 100 }),
      [functionCall("write_stdin", { session_id: 3, chars: "typed\n", yield_time_ms: 60_000 }, { callId: "typing" })],
      DONE,
    ]);
    const agent = new SandboxAgent({
      name: "worker",
      model,
      defaultManifest: new Manifest({ environment: { WORD: "word" } }),
    });
    const { finalOutput } = await runner.run(agent, "Compute it.", { sandbox: { client } });
    expect(finalOutput).toBe("It is done.");
    const [first = "", , updated = "", computed = "", waiting = "", typed = ""] = answersOf(model);
    for (const part of ["exited with code 3", "/workspace\\nword\\nwrong\\n"]) expect(first).toContain(part);
    expect(updated).not.toContain("rror");
    expect(computed).toContain("48\\nend\\n");
    expect(waiting).toContain("session ID 3");
    expect(typed).toContain("code 0\\nOutput:\\ngot typed");
    expect(await roomsLeft()).toEqual([]);
  });

  test("continues in the same sandbox after hibernation, with a run that another client resumes", {
    timeout: 120_000,
  }, async () => {
    const ask = tool({
      name: "ask",
      description: "Asks a person.",
      parameters: { type: "object", properties: {}, required: [], additionalProperties: true },
      strict: false,
      needsApproval: true,
      execute: () => "yes",
    });
    const agentOf = (model: ScriptedModel) =>
      new SandboxAgent({ name: "worker", model, tools: [ask], capabilities: [shell()] });
    const firstAgent = agentOf(
      new ScriptedModel([command("echo kept >note; (sleep 600 &)"), [functionCall("ask", {}, { callId: "ask" })]]),
    );
    const interrupted = await runner.run(firstAgent, "Ask.", { sandbox: { client } });
    expect(interrupted.interruptions).toHaveLength(1);
    const [room = "", ...others] = await roomsLeft();
    expect(others).toEqual([]);
    await roomd.rooms.open(room).sandbox("main").hibernate();
    const text = interrupted.state.toString();
    expect(text).not.toContain(guests.daemon.apiKey);

    const model = new ScriptedModel([command("cat note; pgrep -c sleep"), DONE]);
    const agent = agentOf(model);
    const state = await RunState.fromString(agent, text);
    for (const each of state.getInterruptions()) state.approve(each);
    await runner.run(agent, state, { sandbox: { client: make() } });
    expect(answersOf(model).at(-1)).toContain("kept\\n1\\n");
    expect(await roomsLeft()).toEqual([]);
  });

  test("uses a given room, which stays", { timeout: 120_000 }, async () => {
    const room = await roomd.rooms.create();
    const inRoom = make({ room });
    const session = await inRoom.create({ options: { agentId: "worker" } });
    await room.drive.write("/task.txt", "count\n");
    expect(Buffer.from(await session.readFile({ path: "/mnt/drive/task.txt" })).toString()).toBe("count\n");
    expect(session.state).toMatchObject({ roomId: room.id, agentId: "worker" });
    const kept = JSON.parse(JSON.stringify(await inRoom.serializeSessionState(session.state)));
    const other = await make().resume(await client.deserializeSessionState(kept));
    expect(await other.running()).toBe(true);
    await expect(make({ room: await roomd.rooms.create() }).resume(other.state)).rejects.toThrow(room.id);
    await other.close();
    await other.close();
    expect(await session.running()).toBe(false);
    await expect(client.resume(session.state)).rejects.toThrow("is gone");
    await client.delete(session.state);

    // For a sandbox that existed before, neither a session nor its state ends more than it has started.
    const sandbox = await room.createSandbox("worker", { memoryMib: 256 });
    await expect(client.resume(session.state)).rejects.toThrow("is gone");
    const guest = await client.attach(sandbox);
    expect((await guest.exec({ cmd: "sleep 600", yieldTimeMs: 0 })).sessionId).toBe(1);
    await guest.close();
    await client.delete(guest.state);
    expect((await sandbox.exec("pgrep -c sleep")).stdout).toBe("0\n");
    await room.destroy({ drive: "delete" });
  });

  test("leaves nothing if it cannot start", { timeout: 60_000 }, async () => {
    const entries = { data: { type: "s3_mount" as const, bucket: "some" } };
    await expect(client.create(new Manifest({ entries }))).rejects.toMatchObject({ code: "unsupported_feature" });
    const grants = new Manifest({ extraPathGrants: [{ path: "/data", hostPath: "/srv" }] });
    await expect(client.create(grants)).rejects.toMatchObject({ code: "unsupported_feature" });
    await expect(client.create({ snapshot: { type: "local" } })).rejects.toMatchObject({ code: "unsupported_feature" });
    const outside = new Manifest({ entries: { hosts: { type: "local_file", src: "/etc/hosts" } } });
    await expect(client.create(outside)).rejects.toThrow("extraPathGrants");
    expect(await roomsLeft()).toEqual([]);
  });

  // In one sandbox, which the last of them ends.
  let session: RoomdSandboxSession;
  /** Of this host. */
  const local = mkdtempSync(join(tmpdir(), "roomd-openai-agents-"));
  afterAll(() => rmSync(local, { recursive: true }));
  test("applies its manifest", { timeout: 120_000 }, async () => {
    mkdirSync(join(local, "below"));
    writeFileSync(join(local, "below/run.sh"), "echo ran\n", { mode: 0o755 });
    writeFileSync(join(local, "l".repeat(150)), new Uint8Array(2_000_000).fill(1));
    session = await client.create(
      new Manifest({
        root: "/work",
        entries: {
          notes: {
            type: "dir",
            children: {
              "a.txt": { type: "file", content: "one\ntwo\n", permissions: 0o640, group: { name: "staff" } },
            },
          },
          copied: { type: "local_dir", src: local },
          "one.sh": { type: "local_file", src: join(local, "below/run.sh") },
        },
        environment: { WORD: { value: "word" }, SECRET: { value: "hidden", ephemeral: true } },
        extraPathGrants: [{ path: local }],
        users: ["bob"],
        groups: [{ name: "crew", users: ["bob"] }],
      }),
    );
    const shown = await session.exec({
      cmd: `stat -c '%a %U %G' notes/a.txt; copied/below/run.sh; ./one.sh; wc -c <copied/${"l".repeat(150)}; echo $WORD $SECRET; id -nG bob`,
    });
    expect(shown.stdout).toBe("640 root staff\nran\nran\n2000000\nword hidden\nbob crew\n");
    const state = JSON.stringify(await client.serializeSessionState(session.state));
    expect([state.includes("word"), state.includes("hidden")]).toEqual([true, false]);

    symlinkSync("/etc/hosts", join(local, "link"));
    const linked = { path: "linked", entry: { type: "local_dir" as const, src: local } };
    await expect(session.materializeEntry(linked)).rejects.toMatchObject({ code: "local_dir_read_error" });

    const git = "git -c user.name=x -c user.email=x@example.com";
    await session.exec({
      cmd: `mkdir /srv/it; cd /srv/it; git init -q; mkdir sub; echo v1 >sub/f; git add .; ${git} commit -qm 1`,
    });
    const repository = { type: "git_repo" as const, repo: "file:///srv/it" };
    await session.materializeEntry({ path: "cloned", entry: repository, runAs: "bob" });
    await session.materializeEntry({ path: "part/of", entry: { ...repository, subpath: "sub" } });
    const cloned = await session.exec({ cmd: "cat cloned/sub/f part/of/f; stat -c %U cloned/sub/f; ls part/of" });
    expect(cloned.stdout).toBe("v1\nv1\nbob\nf\n");
    const none = { ...repository, repo: "file:///none" };
    await expect(session.materializeEntry({ path: "none", entry: none })).rejects.toMatchObject({
      code: "git_clone_error",
    });
    expect(Object.keys(session.state.manifest.entries).sort()).toEqual([
      "cloned",
      "copied",
      "notes",
      "one.sh",
      "part/of",
    ]);
  });

  test("runs commands: codes, streams, users, durations, truncated output", { timeout: 60_000 }, async () => {
    expect(await session.exec({ cmd: "echo out; echo wrong >&2; exit 4", workdir: "notes" })).toMatchObject({
      output: "out\nwrong\n",
      stdout: "out\n",
      stderr: "wrong\n",
      exitCode: 4,
    });
    expect((await session.exec({ cmd: "kill -9 $$" })).exitCode).toBe(137);
    const { stdout } = await session.exec({
      cmd: "id -un; echo $0; pwd",
      runAs: "bob",
      shell: "/bin/sh",
      login: false,
    });
    expect(stdout).toBe("bob\n/bin/sh\n/work\n");
    expect((await session.exec({ cmd: "pwd", workdir: "/etc" })).stdout).toBe("/etc\n");
    for (const wrong of [{ workdir: "none" }, { runAs: "nobody-here" }]) {
      const { exitCode, output, stderr } = await session.exec({ cmd: "true", ...wrong });
      expect([exitCode, stderr]).toEqual([1, output]);
      expect(output).toContain(Object.values(wrong).join());
    }
    expect((await session.exec({ cmd: "x".repeat(200_000) })).exitCode).toBe(126);
    const [first, ...more] = await Promise.all(
      Array.from({ length: 5 }, (_, at) => session.exec({ cmd: `sleep 1; echo ${at}` })),
    );
    expect([first, ...more].map((done) => done?.stdout)).toEqual(["0\n", "1\n", "2\n", "3\n", "4\n"]);

    const short = await make({ commandTimeoutMs: 1500 }).resume(session.state);
    const { sessionId = 0, exitCode } = await short.exec({ cmd: "echo begun; sleep 600", yieldTimeMs: 0 });
    expect(exitCode).toBeUndefined();
    const late = await short.writeStdin({ sessionId, yieldTimeMs: 60_000 });
    expect(late).toMatch(/exited with code 124.*killed/s);
    expect(await short.writeStdin({ sessionId })).toContain("exited with code 1");

    const long = await session.execCommand({ cmd: "seq 1 1000000", maxOutputTokens: 50 });
    expect(long).toContain("tokens truncated");
    expect(long).toContain("1000000\n");
    expect(long.length).toBeLessThan(1000);
  });

  test("types into running commands, with a terminal and without", { timeout: 60_000 }, async () => {
    /** Types, and waits until that has been answered. */
    async function type(sessionId = 0, chars: string, expected: string): Promise<string> {
      let heard = await session.writeStdin({ sessionId, chars });
      await until(`the output contains ${expected}`, async () => {
        if (!heard.includes(expected)) heard += await session.writeStdin({ sessionId });
        return heard.includes(expected);
      });
      return heard;
    }
    const loop = "trap 'echo caught; exit 5' INT; echo set; while :; do read -r line; echo got $line; done";
    const plain = await session.exec({ cmd: loop, yieldTimeMs: 0 });
    await type(plain.sessionId, "one\n", "got one\n");
    expect(await type(plain.sessionId, "\u0003", "caught")).toContain("exited with code 5");

    const read = "tty; stty size; read -r line; echo got $line; sleep 600";
    const terminal = await session.exec({ cmd: read, tty: true, yieldTimeMs: 0 });
    const output = terminal.output + (await type(terminal.sessionId, "one\n", "got one\r\n"));
    expect(output).toMatch(/\/dev\/pts\/\d+\r\n/);
    expect(output).toContain("24 80\r\n");
    await type(terminal.sessionId, "\u0003", "exited with code 130");
  });

  test("has files: read, listed, patched, viewed, with errors", { timeout: 60_000 }, async () => {
    const text = async (path: string) => Buffer.from(await session.readFile({ path })).toString();
    expect(Buffer.from(await session.readFile({ path: "notes/a.txt", maxBytes: 5 })).toString()).toBe("one\nt");
    await expect(text("none")).rejects.toMatchObject({ code: "workspace_read_not_found" });
    await expect(text("/etc/hosts")).rejects.toMatchObject({ code: "invalid_manifest_path" });
    await expect(session.readFile({ path: "notes/a.txt", runAs: "bob" })).rejects.toThrow("Permission denied");
    expect(await session.listDir({ path: "notes" })).toEqual([{ name: "a.txt", path: "notes/a.txt", type: "file" }]);
    expect(await session.pathExists("notes/none")).toBe(false);
    expect([await session.directoryExists("notes"), await session.directoryExists("notes/a.txt")]).toEqual([
      true,
      false,
    ]);

    const editor = session.createEditor("bob");
    await editor.createFile({ type: "create_file", path: "b.txt", diff: "+one\n+two" });
    const again = editor.createFile({ type: "create_file", path: "b.txt", diff: "+one" });
    await expect(again).rejects.toMatchObject({ code: "apply_patch_invalid_path" });
    await editor.updateFile({ type: "update_file", path: "b.txt", diff: "@@\n one\n-two\n+three", moveTo: "c/d.txt" });
    expect(await text("c/d.txt")).toContain("one\nthree");
    expect((await session.exec({ cmd: "stat -c %U c/d.txt" })).stdout).toBe("bob\n");
    const pending = editor.updateFile({ type: "update_file", path: "b.txt", diff: "@@\n-one\n+two" });
    await expect(pending).rejects.toMatchObject({ code: "apply_patch_file_not_found" });
    await editor.deleteFile({ type: "delete_file", path: "c/d.txt" });
    await expect(editor.deleteFile({ type: "delete_file", path: "c/d.txt" })).rejects.toThrow("not there");

    const png = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==";
    await session.exec({ cmd: `echo ${png} | base64 -d >dot.png; head -c 11000000 /dev/zero >big.png` });
    expect(await session.viewImage({ path: "dot.png" })).toMatchObject({
      type: "image",
      image: { mediaType: "image/png" },
    });
    await expect(session.viewImage({ path: "big.png" })).rejects.toThrow("10 MB");
    const binary = session.createEditor().updateFile({ type: "update_file", path: "dot.png", diff: "@@\n-one\n+two" });
    await expect(binary).rejects.toMatchObject({ code: "apply_patch_decode_error" });
  });

  test("exposes a port, and is destroyed on close", { timeout: 60_000 }, async () => {
    await session.exec({ cmd: "python3 -m http.server 8000", workdir: "notes", yieldTimeMs: 0 });
    const { url = "", host, port } = await session.resolveExposedPort(8000);
    expect(`http://${host}:${port}`).toBe(new URL(guests.daemon.url).origin);
    let answer = "";
    await until("the server answers", async () => {
      answer = await (await fetch(`${url}a.txt`)).text();
      return !answer.includes("port_not_listening");
    });
    expect(answer).toBe("one\ntwo\n");
    await expect(session.resolveExposedPort(0)).rejects.toThrow("1 and 65535");
    await session.close();
    expect(await session.running()).toBe(false);
    expect(await roomsLeft()).toEqual([]);
  });
});
