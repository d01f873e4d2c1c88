/** OpenSSH's own programs against the gateway, on real guests: commands, screens, files, ports. */
import { createHash, randomBytes } from "node:crypto";
import { mkdirSync, readFileSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { beforeAll, expect, test } from "vitest";
import { RealTerminal } from "../harness/clients/real-terminal.ts";
import { ended, run, SshClient, sshPort } from "../harness/clients/ssh-client.ts";
import { SshScreen } from "../harness/clients/ssh-screen.ts";
import { freePort } from "../harness/free-port.ts";
import { until, withGuests } from "../harness/guests.ts";

const MIB = 1024 * 1024;
const USER = "it@ssh";
const HOST = "127.0.0.1";
const WEB_SERVER =
  "mkdir /root/web && cd /root/web && echo from the guest > page && head -c 3000000 /dev/urandom > big && (setsid python3 -m http.server --bind 127.0.0.1 8000 >/dev/null 2>&1 &)";
const sha256 = (bytes: Uint8Array) => createHash("sha256").update(bytes).digest("hex");

withGuests("ssh", {}, (guests) => {
  let client: SshClient;
  const ssh = (words: string[], input?: string | Buffer, more?: string[]) => client.ssh(USER, words, input, more);
  const sh = async (line: string) => {
    const done = await ssh([line]);
    if (done.status !== 0) throw new Error(`${line}: ${done.status} ${done.stderr}`);
    return done.stdout.toString().trim();
  };

  beforeAll(async () => {
    const { daemon } = guests;
    client = new SshClient(sshPort(daemon));
    await daemon.room("ssh");
    await daemon.sandbox("ssh", "it", guests.cid(), { memory_mib: 512, env: { FROM: "sandbox" } });
    await daemon.ok("POST", "/v1/orgs/self/ssh-keys", { public_key: client.publicKey });
    // For -L: it takes seconds to start.
    await daemon.sh("ssh", "it", WEB_SERVER);
    return () => client[Symbol.dispose]();
  });

  test("a command's status is ssh's exit status, and its streams stay separate", async () => {
    const done = await ssh(["echo out; echo err >&2; exit 7"]);
    expect({ ...done, stdout: done.stdout.toString() }).toEqual({
      status: 7,
      signal: null,
      stdout: "out\n",
      stderr: "err\n",
    });
    expect((await ssh(["true"])).status).toBe(0);
    expect((await ssh(["no-such-program"])).status).toBe(127);
    const both = await ssh(["head -c 3000000 /dev/zero & head -c 3000000 /dev/zero >&2; wait"]);
    expect([both.stdout.byteLength, both.stderr.length]).toEqual([3_000_000, 3_000_000]);
  });

  test("a command ended by a signal is reported as that", async () => {
    const done = await ssh(["kill -KILL $$"], "", ["-v"]);
    expect(done.status).toBe(255);
    expect(done.stderr).toContain("exit-signal");
  });

  test("standard input arrives completely and is closed; a shell reads commands from it", async () => {
    const bytes = randomBytes(10 * MIB);
    expect((await ssh(["sha256sum"], bytes)).stdout.toString()).toContain(sha256(bytes));
    const back = await ssh(["cat"], bytes);
    expect(sha256(back.stdout)).toBe(sha256(bytes));
    // A command that reads no more of it is not blocked.
    expect((await ssh(["head -c 1 >/dev/null; echo enough"], bytes)).stdout.toString()).toBe("enough\n");
    const shell = await ssh([], "echo $((6 * 7)); exit 5\n");
    expect([shell.status, shell.stdout.toString()]).toEqual([5, "42\n"]);
  });

  test("the user's shell runs it, with the sandbox's environment and accepted variables of the client", async () => {
    expect(await sh("echo {1..3} $FROM $ROOMD_AGENT_ID $ROOMD_ROOM_ID")).toBe("1 2 3 sandbox it ssh");
    const more = ["-o", "SetEnv=LC_TIME=C.UTF-8 GIT_AUTHOR_NAME=Ada LD_PRELOAD=/x ROOMD_AGENT_ID=other"];
    const line = "echo $LC_TIME $GIT_AUTHOR_NAME $LD_PRELOAD- $ROOMD_AGENT_ID";
    expect((await ssh([line], "", more)).stdout.toString()).toBe("C.UTF-8 Ada - it\n");
  });

  test("a terminal has its size, follows the client's, and accepts ctrl-c", async () => {
    await using screen = new SshScreen(client, USER, { rows: 31, cols: 97 });
    await screen.until(/[#$] $/);
    screen.type("stty size; echo $TERM; tty\r");
    await screen.until(/31 97\r\n[^\n]*xterm-256color\r\n[^\n]*\/dev\/pts\/\d+\r\n.*[#$] $/);
    screen.resize(40, 132);
    // ssh itself reports the new size some time later than typed input.
    const pts = /\/dev\/pts\/\d+/.exec(screen.shown)?.[0];
    await until("the guest has the new size", async () => (await sh(`stty -F ${pts} size`)) === "40 132");
    screen.type("stty size\r");
    await screen.until(/40 132\r\n/);
    screen.type("sleep 1000\r");
    await until("the process runs", async () => (await ssh(["pgrep -x sleep"])).status === 0);
    screen.type("\x03");
    await until("the process has exited", async () => (await ssh(["pgrep -x sleep"])).status === 1);
    screen.type("exit 9\r");
    expect(await screen.status).toBe(9);
  });

  test("an interactive session: vi, top, a resize, ctrl-c, and background processes", async () => {
    const env = { PATH: process.env.PATH ?? "", HOME: client.home, TERM: "xterm-256color" };
    await using terminal = new RealTerminal(["ssh", ...client.options, "-l", USER, HOST], env);
    await terminal.shows("# ");
    terminal.type("vi /tmp/by-ssh\r");
    await terminal.shows(/1049h[\s\S]*\/tmp\/by-ssh/);
    terminal.type("itold by ssh\x1b:wq\r");
    await terminal.shows("\x1b[?1049l");
    expect(await sh("cat /tmp/by-ssh")).toBe("told by ssh");
    let from = terminal.mark;
    terminal.type("top\r");
    await terminal.shows("PID", from);
    terminal.type("q");
    // It discards input typed before it had ended.
    await terminal.shows(/PID[\s\S]*# $/, from);
    terminal.resize(41, 121);
    await until("the terminal has the new size", async () => {
      from = terminal.mark;
      terminal.type("stty size\r");
      await terminal.shows(/\d+ \d+\r\n/, from);
      return terminal.text.slice(from).includes("41 121\r\n");
    });
    terminal.type("sh -c 'echo sleep-be\"\"gins; exec sleep 1000'\r");
    await terminal.shows("sleep-begins");
    terminal.type("\x03");
    terminal.type("echo code-$?-\r");
    await terminal.shows("code-130-");
    // As with any login, the end of the shell ends the connection, and not the programs detached from it.
    terminal.type("setsid sleep 5005 & nohup sleep 5005 >/dev/null 2>&1 &\r");
    await until("both processes run", async () => (await sh("pgrep -c -f -x 'sleep 5005' || true")) === "2");
    terminal.type("exit 5\r");
    expect((await terminal.ended).exit_code).toBe(5);
    expect(await sh("pgrep -c -f -x 'sleep 5005'; pkill -f -x 'sleep 5005'")).toBe("2");
  });

  test("a command in a terminal: both streams as one, its status, its end with the connection", async () => {
    await using screen = new SshScreen(client, USER, { rows: 20, cols: 50 }, ["stty size; echo err >&2; exit 3"]);
    expect(await screen.status).toBe(3);
    expect(screen.shown).toBe("20 50\r\nerr\r\n");
    const lost = new SshScreen(client, USER, { rows: 20, cols: 50 }, ["sleep 987"]);
    await until("the process runs", async () => (await ssh(["pgrep -f 'sleep 98[7]'"])).status === 0);
    lost.kill();
    await until("the process has exited", async () => (await ssh(["pgrep -f 'sleep 98[7]'"])).status === 1);
  });

  test("a command without a terminal gets the connection's end", async () => {
    const child = client.start(USER, ["sleep 654"]);
    await until("the process runs", async () => (await ssh(["pgrep -f 'sleep 65[4]'"])).status === 0);
    child.kill("SIGKILL");
    await until("the process has exited", async () => (await ssh(["pgrep -f 'sleep 65[4]'"])).status === 1);
  });

  test("a stalled reader blocks its command, and no other", async () => {
    const child = client.start(USER, ["yes"]);
    const written = async () => Number((await sh("cat /proc/$(pgrep -x yes)/io")).match(/wchar: (\d+)/)?.[1]);
    await until("the process runs", async () => (await ssh(["pgrep -x yes"])).status === 0);
    const held = await until(
      "the writer is stalled",
      async () => {
        const before = await written();
        return before > 0 && (await written()) === before && (await written()) === before ? before : null;
      },
      30_000,
    );
    // The retained output of an execution, and the bytes in transit to the reader.
    expect(held).toBeLessThan(16 * MIB + 8 * MIB);
    child.kill("SIGKILL");
    await until("the process has exited", async () => (await ssh(["pgrep -x yes"])).status === 1);
  });

  test("scp copies trees both ways, by sftp and by its old protocol", async () => {
    const tree = join(client.home, "tree");
    mkdirSync(join(tree, "deep"), { recursive: true });
    const big = randomBytes(12 * MIB);
    writeFileSync(join(tree, "big"), big);
    writeFileSync(join(tree, "deep", "a b'\"ü"), "small");
    writeFileSync(join(tree, "deep", "empty"), "");
    // The one with new keys every few MiB.
    for (const way of [["-o", "RekeyLimit=4M"], ["-O"]]) {
      const there = `/root/tree${way.length}`;
      const up = await run("scp", [...way, ...client.options, "-q", "-r", tree, `${USER}@${HOST}:${there}`]);
      expect(up, up.stderr).toMatchObject({ status: 0, stderr: "" });
      expect(await sh(`sha256sum < ${there}/big`)).toContain(sha256(big));
      const back = join(client.home, `back${way.length}`);
      const down = await run("scp", [...way, ...client.options, "-q", "-r", `${USER}@${HOST}:${there}`, back]);
      expect(down, down.stderr).toMatchObject({ status: 0, stderr: "" });
      const same = await run("diff", ["-r", tree, back]);
      expect(same.stdout.toString() + same.stderr).toBe("");
    }
  });

  test("sftp executes a batch", async () => {
    writeFileSync(join(client.home, "up"), "by sftp");
    const batch = [
      "mkdir /root/s",
      `put ${client.home}/up /root/s/up`,
      "chmod 640 /root/s/up",
      "ln -s up /root/s/link",
      "rename /root/s/up /root/s/to",
      `get /root/s/to ${client.home}/down`,
      "ls -l /root/s",
      "-rm /root/s/none",
    ].join("\n");
    const done = await run("sftp", [...client.options, "-b", "-", `${USER}@${HOST}`], batch);
    expect(done.status, done.stderr).toBe(0);
    expect(readFileSync(join(client.home, "down"), "utf8")).toBe("by sftp");
    expect(done.stdout.toString()).toMatch(/-rw-r-----.*7 .*\/root\/s\/to/);
  });

  test("rsync and git work over it unchanged", async () => {
    const tree = join(client.home, "synced");
    mkdirSync(tree);
    for (let index = 0; index < 20; index++) writeFileSync(join(tree, `file-${index}`), randomBytes(10_000));
    symlinkSync("file-1", join(tree, "link"));
    const rsync = (from: string, to: string) =>
      run("rsync", ["-a", "--delete", "-e", `${client.command} -l ${USER}`, from, to]);
    const up = await rsync(`${tree}/`, `${HOST}:/root/synced/`);
    expect(up.status, up.stderr).toBe(0);
    const down = await rsync(`${HOST}:/root/synced/`, join(client.home, "again/"));
    expect(down.status, down.stderr).toBe(0);
    expect((await run("diff", ["-r", tree, join(client.home, "again")])).status).toBe(0);

    const made =
      "git init -q -b main /root/repo && cd /root/repo && git -c user.name=a -c user.email=a@b commit -q --allow-empty -m first && git config receive.denyCurrentBranch ignore";
    await sh(made);
    const clone = join(client.home, "clone");
    const git = (...args: string[]) => run("git", args, "", { ...process.env, GIT_SSH_COMMAND: client.command });
    const cloned = await git(
      "clone",
      "-q",
      `ssh://${encodeURIComponent(USER)}@${HOST}:${client.port}/root/repo`,
      clone,
    );
    expect(cloned.status, cloned.stderr).toBe(0);
    const pushed = await git(
      "-C",
      clone,
      "-c",
      "user.name=a",
      "-c",
      "user.email=a@b",
      "commit",
      "-q",
      "--allow-empty",
      "-m",
      "second",
    );
    expect(pushed.status, pushed.stderr).toBe(0);
    expect((await git("-C", clone, "push", "-q")).stderr).toBe("");
    expect(await sh("git -C /root/repo log --format=%s main | tr '\\n' ' '")).toBe("second first");
  });

  test("-L reaches the guest's loopback, and nothing else can be forwarded", async () => {
    await until("the server listens", async () => (await ssh(["curl -sf http://127.0.0.1:8000/page"])).status === 0);
    const [port, closed, outside] = [await freePort(), await freePort(), await freePort()];
    const forwards = [`${port}:localhost:8000`, `${closed}:127.0.0.1:9`, `${outside}:192.0.2.1:80`].flatMap((each) => [
      "-L",
      each,
    ]);
    const child = client.start(USER, ["cat"], forwards);
    const get = (at: number, path = "page") =>
      fetch(`http://127.0.0.1:${at}/${path}`, { signal: AbortSignal.timeout(10_000) });
    try {
      await until("the forwarded port answers", async () => (await get(port).catch(() => null))?.ok);
      expect(await (await get(port)).text()).toBe("from the guest\n");
      const pages = await Promise.all(Array.from({ length: 10 }, async () => (await get(port)).text()));
      expect(new Set(pages)).toEqual(new Set(["from the guest\n"]));
      const big = new Uint8Array(await (await get(port, "big")).arrayBuffer());
      expect(await sh("sha256sum < /root/web/big")).toContain(sha256(big));
      await expect(get(closed)).rejects.toThrow();
      await expect(get(outside)).rejects.toThrow();
    } finally {
      child.stdin?.end();
      expect((await ended(child)).status).toBe(0);
    }
    const back = await ssh(["true"], "", ["-o", "ExitOnForwardFailure=yes", "-R", "0:127.0.0.1:1"]);
    expect([back.status, back.stderr]).toEqual([255, expect.stringContaining("remote port forwarding failed")]);
    const socket = await ssh(['test -z "$SSH_AUTH_SOCK" && test -z "$DISPLAY"'], "", ["-A"]);
    expect(socket.status).toBe(0);
  });

  test("actions are audited, with actor and address", async () => {
    await sh("true # for the record");
    const { items } = await guests.daemon.ok("GET", "/v1/rooms/ssh/audit?event=ssh.&order=desc&limit=200");
    const found = (event: string) => items.filter((each: { event: string }) => each.event === event);
    for (const event of ["ssh.login", "ssh.exec", "ssh.shell", "ssh.sftp", "ssh.forward", "ssh.session_closed"]) {
      expect(found(event).length, event).toBeGreaterThan(0);
      expect(found(event)[0]).toMatchObject({
        source: "ssh",
        ip: "127.0.0.1",
        agent_id: "it",
        actor: { type: "key", name: "test" },
      });
    }
    expect(guests.daemon.log).not.toMatch(/TypeError|Warning|"level":"error"/);
    expect(found("ssh.exec")[0].details).toMatchObject({ command: "true # for the record" });
  });
});
