/** The small set of tools with a real guest, and the size of its answers. */
import { beforeAll, expect, test } from "vitest";
import { connectMcp, type McpClient } from "../../harness/clients/mcp-client.ts";
import type { Json } from "../../harness/daemon.ts";
import { withGuests } from "../../harness/guests.ts";

const MAX_BYTES = 40_000;
/** Four answers, each as text and as structured content, the preflight included. */
const MAX_HAPPY_PATH_BYTES = 5000;

const bytesOf = (value: unknown) => Buffer.byteLength(JSON.stringify(value));

withGuests("small tools and short answers", {}, (guests) => {
  test("a model works in its own sandbox: run, files, a port, checkpoints, close", async () => {
    const { daemon } = guests;
    const before = daemon.leftovers();
    const client = await connectMcp(daemon, { tools: "small" });
    const room = `mcp-${(await daemon.ok("GET", "/v1/me")).key_id.slice(-8)}`;
    /** Of a call that succeeds: its text, and the result. */
    const use = async (name: string, args: Json = {}): Promise<{ text: string; result: Json }> => {
      const { content, structuredContent } = await client.result(name, args);
      if (!structuredContent.ok) throw new Error(`${name}: ${content[0].text}`);
      return { text: content[0].text, result: structuredContent.result };
    };
    const output = async (args: Json) => (await use("run", args)).text.replace(/^exit 0 · .* s\n/, "");

    expect(await output({ command: "id -u" })).toBe("0\n");
    expect(await daemon.ok("GET", `/v1/rooms/${room}/sandboxes/main`)).toMatchObject({ state: "running" });
    for (const path of ["/root/app/site/index.html", "/root/notes/é %2F.txt", "/mnt/drive/notes/é.txt"]) {
      await use("write_file", { path, content: "one\ntwo\nthree\n" });
      expect(await output({ command: `cat '${path}'` })).toBe("one\ntwo\nthree\n");
      expect((await use("read_file", { path })).text).toBe("one\ntwo\nthree\n");
      const part = await use("read_file", { path, limit: 4 });
      expect(part.text).toMatch(/^one\n\n\[.*\b0 to 4 of 14\b.*\bread_file \{.*\}\]$/);
      expect((await use(part.result.next.tool, { ...part.result.next.arguments, limit: 99 })).text).toBe(
        "two\nthree\n",
      );
      await use("edit_file", { path, old: "two", new: "2" });
      expect((await use("read_file", { path })).text).toBe("one\n2\nthree\n");
      const unclear = (await client.result("edit_file", { path, old: "e", new: "E" })).structuredContent;
      expect(unclear).toMatchObject({
        ok: false,
        code: "validation_failed",
        detail: expect.stringContaining("3 times"),
      });
      const listed = await use("list_files", { path: path.slice(0, path.lastIndexOf("/")) });
      expect(listed.text).toBe(`- 12 ${path}`);
    }
    expect(await output({ code: "print(6 * 7)", language: "python" })).toBe("42\n");
    await use("write_file", { path: "/root/empty", content: "" });
    expect((await use("read_file", { path: "/root/empty" })).result).toMatchObject({ size_bytes: 0 });
    const bytes = Buffer.from([0, 255, 10, 128]).toString("base64");
    await use("write_file", { path: "/root/bytes", content_b64: bytes });
    expect(await output({ command: "base64 /root/bytes" })).toBe(`${bytes}\n`);
    expect((await use("read_file", { path: "/root/bytes" })).text).toContain(bytes);
    const { items } = await daemon.ok("GET", `/v1/rooms/${room}/audit?event=file.written&limit=1`);
    expect(items[0]).toMatchObject({ source: "mcp", agent_id: "main", details: { path: "/root/bytes" } });

    const server = await use("run", {
      command: "cd /root/app/site && exec python3 -m http.server 8000",
      background: true,
    });
    expect(server.result).toMatchObject({ state: "running", next: { tool: "follow" } });
    const listening = "for i in $(seq 100); do curl -fs http://127.0.0.1:8000/ && exit 0; sleep 0.1; done; exit 1";
    expect(await output({ command: listening })).toBe("one\n2\nthree\n");
    const { url } = (await use("url", { port: 8000 })).result;
    const visited = await fetch(url, { redirect: "manual" });
    const cookie = visited.headers
      .getSetCookie()
      .map((each) => each.split(";")[0])
      .join("; ");
    const to = new URL(visited.headers.get("location") ?? url, url);
    const page = visited.status === 200 ? visited : await fetch(to, { headers: { cookie } });
    expect(await page.text()).toBe("one\n2\nthree\n");

    const started = await use("run", { command: "cat", background: true });
    const { next } = started.result;
    const fed = await use(next.tool, { ...next.arguments, input: "to the end", eof: true });
    expect(fed).toMatchObject({
      result: { state: "exited", exit_code: 0 },
      text: expect.stringContaining("\nto the end"),
    });

    await use("checkpoint", { action: "save", name: "before" });
    await use("run", { command: "rm -r /root/app" });
    const missing = (await client.result("read_file", { path: "/root/app/site/index.html" })).structuredContent;
    expect(missing).toMatchObject({ ok: false, code: "path_not_found" });
    await use("checkpoint", { action: "back", name: "before" });
    expect(await output({ command: "cat /root/app/site/index.html" })).toBe("one\n2\nthree\n");
    await use("close");
    expect(await daemon.api("GET", `/v1/rooms/${room}`)).toMatchObject({ status: 404 });
    await client.close();
    expect(daemon.leftovers()).toEqual(before);
  });

  let client: McpClient;
  const at = { room_id: "short", sandbox: "worker" };
  beforeAll(async () => {
    client = await connectMcp(guests.daemon);
  });

  test("from creating a room to reading a file takes a few kilobytes", async () => {
    const { room_id, sandbox } = at;
    const calls: [string, Json][] = [
      ["room_create", { room_id }],
      ["sandbox_create", { room_id, agent_id: sandbox }],
      ["sandbox_exec", { ...at, argv: ["python3", "-c", "open('/mnt/drive/out.txt', 'w').write('42'); print(42)"] }],
      ["fs_read", { room_id, path: "/out.txt" }],
    ];
    const sizes: Record<string, number> = {};
    for (const [name, args] of calls) {
      const answer = await client.result(name, args);
      expect([name, answer.structuredContent]).toMatchObject([name, { ok: true }]);
      sizes[name] = bytesOf(answer);
    }
    const sum = Object.values(sizes).reduce((all, each) => all + each, 0);
    console.log(`bytes of answers: ${JSON.stringify(sizes)}, ${sum} together`);
    expect(sum).toBeLessThan(MAX_HAPPY_PATH_BYTES);
  });

  test("long output is shown by its start and end, with the call that reads the rest", async () => {
    const answer = await client.result("sandbox_exec", { ...at, command: "seq 1 200000" });
    console.log(`seq 1 200000: an answer of ${bytesOf(answer)} bytes`);
    expect(bytesOf(answer)).toBeLessThan(MAX_BYTES);
    const { result } = answer.structuredContent;
    const all = Array.from({ length: 200_000 }, (_, index) => `${index + 1}\n`).join("");
    expect(result).toMatchObject({ state: "exited", exit_code: 0, stdout_bytes: all.length, stderr_bytes: 0 });
    expect(result.next).toBeUndefined();
    const [, head = "", tail = ""] = /^exit 0 · [^\n]* s\n(.*)\n… [^\n]* …\n(.*)$/s.exec(answer.content[0].text) ?? [];
    expect([head.length, tail.length]).toEqual([4 * 1024, 12 * 1024]);
    expect([all.startsWith(head), all.endsWith(tail)]).toEqual([true, true]);
    expect(result.left_out_bytes).toBe(all.length - head.length - tail.length);
    let between = "";
    for (let call = result.rest; between.length < result.left_out_bytes; ) {
      const page = await client.call(call.tool, call.arguments);
      between += page.result.stdout;
      call = page.result.next;
    }
    expect(between.slice(0, result.left_out_bytes) === all.slice(head.length, -tail.length)).toBe(true);
  });

  test("output of control characters is within the same size, with the call that reads the rest", async () => {
    const command = "head -c 16000 /dev/zero; head -c 16000 /dev/zero | tr '\\0' '\\1' >&2";
    const answer = await client.result("sandbox_exec", { ...at, command });
    expect(bytesOf(answer)).toBeLessThan(MAX_BYTES);
    const { result } = answer.structuredContent;
    expect(result).toMatchObject({ stdout_bytes: 16_000, stderr_bytes: 16_000, rest: { tool: "sandbox_exec" } });
    expect(result.left_out_bytes).toBeGreaterThan(16_000);
    const few = await client.result("sandbox_exec", { ...at, command: "head -c 12000 /dev/zero" });
    expect(bytesOf(few)).toBeLessThan(MAX_BYTES);
    expect(few.structuredContent.result).toMatchObject({ stdout_bytes: 12_000, rest: { tool: "sandbox_exec" } });
  });
});
