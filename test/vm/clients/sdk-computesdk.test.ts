/** roomd as a provider of computesdk, with real guests: every method of the provider, as computesdk itself calls it. */
import { beforeAll, expect, test } from "vitest";
import { roomd } from "../../../sdk/typescript/src/computesdk.ts";
import { until, withGuests } from "../../harness/guests.ts";

withGuests("computesdk", {}, (guests) => {
  let provider: ReturnType<typeof roomd>;
  beforeAll(() => {
    provider = roomd({ url: guests.daemon.url, apiKey: guests.daemon.apiKey, memoryMib: 256 });
  });

  test("creates, finds, lists and destroys sandboxes", async () => {
    const made = await provider.sandbox.create({ envs: { WORD: "word" }, metadata: { run: 7 } });
    expect((await made.runCommand("echo $WORD")).stdout).toBe("word\n");
    expect(await made.getInfo()).toMatchObject({ id: made.sandboxId, provider: "roomd", status: "running" });
    const found = await provider.sandbox.getById(made.sandboxId);
    expect((await found?.runCommand("exit 3"))?.exitCode).toBe(3);
    expect((await provider.sandbox.list()).map(({ sandboxId }) => sandboxId)).toEqual([made.sandboxId]);
    await made.destroy();
    expect(await provider.sandbox.getById(made.sandboxId)).toBeNull();
    expect(await provider.sandbox.list()).toEqual([]);
  });

  test("runs commands with streamed output, and accesses files", async () => {
    const sandbox = await provider.sandbox.create();
    const chunks: string[] = [];
    const result = await sandbox.runCommand("pwd; echo $A; echo wrong >&2", {
      cwd: "/tmp",
      env: { A: "b" },
      onStdout: (text) => chunks.push(text),
    });
    expect(result).toMatchObject({ stdout: "/tmp\nb\n", stderr: "wrong\n", exitCode: 0 });
    expect(chunks.join("")).toBe("/tmp\nb\n");
    const { filesystem } = sandbox;
    const path = "/tmp/a dir/it's $HOME.txt";
    await filesystem.writeFile(path, "kept\n");
    expect(await filesystem.readFile(path)).toBe("kept\n");
    await filesystem.mkdir("/tmp/a dir/below");
    const entries = await filesystem.readdir("/tmp/a dir");
    expect(entries.map(({ name, type }) => [name, type]).sort()).toEqual([
      ["below", "directory"],
      ["it's $HOME.txt", "file"],
    ]);
    expect([await filesystem.exists(path), await filesystem.exists("/none")]).toEqual([true, false]);
    await filesystem.remove("/tmp/a dir");
    await expect(filesystem.readFile(path)).rejects.toMatchObject({ code: "path_not_found" });
    await sandbox.destroy();
  });

  test("returns a URL for a port", async () => {
    const sandbox = await provider.sandbox.create();
    await sandbox.runCommand("mkdir -p /srv && echo served >/srv/x");
    await sandbox.runCommand("python3 -m http.server 8000 --directory /srv", { background: true });
    const url = await sandbox.getUrl({ port: 8000 });
    const answer = await until("the server listens", async () => {
      const answered = await fetch(new URL("x", url.endsWith("/") ? url : `${url}/`));
      return answered.status === 502 ? null : answered;
    });
    expect([answer.status, await answer.text()]).toEqual([200, "served\n"]);
    await sandbox.destroy();
  });
});
