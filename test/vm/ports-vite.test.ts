/** A development server of the kind that people expose: Vite in a guest, its pages, its modules, and a change that it announces. */
import { spawnSync } from "node:child_process";
import { existsSync, readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { join, relative } from "node:path";
import { expect, test } from "vitest";
import { ExposedPort } from "../harness/exposed-port.ts";
import { LONG, until, withGuests } from "../harness/guests.ts";

if (!LONG)
  console.log("vite: left out, because a guest without KVM takes a minute to start it; ROOMD_TEST_LONG=1 runs it");

withGuests("a Vite development server", {}, (guests) => {
  test.skipIf(!LONG)(
    "serves its page and its modules, and sends updates over WebSocket",
    async () => {
      const { daemon } = guests;
      const sh = (line: string) => daemon.sh("v", "a", line);
      await daemon.room("v");
      await daemon.sandbox("v", "a", guests.cid(), { memory_mib: 1024 });
      const sent = await fetch(`${daemon.url}/v1/rooms/v/drive/files/modules.tar`, {
        method: "PUT",
        headers: { authorization: `Bearer ${daemon.apiKey}` },
        body: archiveOf("vite"),
      });
      expect(sent.ok).toBe(true);
      await sh("mkdir -p /root/app && cd /root/app && tar -xf /mnt/drive/modules.tar");
      await sh(`cd /root/app && echo '<script type="module" src="/main.js"></script>' >index.html`);
      await sh(`cd /root/app && echo 'document.title = "one"; import.meta.hot.accept();' >main.js`);
      const port = await ExposedPort.expose(daemon, "v/sandboxes/a", { port: 5173 });
      await sh("cd /root/app && (setsid node node_modules/vite/bin/vite.js --port 5173 >/tmp/vite.log 2>&1 &)");
      // Vite probes the port before it takes it: a listener alone proves nothing yet.
      const page = await until("the port answers", async () => (await port.fetch("")).text().then(pageIn), 240_000);
      expect(page).toContain('src="/@vite/client"');
      const main = await port.fetch("main.js");
      expect(main.headers.get("content-type")).toContain("javascript");
      expect(await main.text()).toContain("one");
      const client = await (await port.fetch("@vite/client")).text();
      const [, token = ""] = /wsToken = "([^"]+)"/.exec(client) ?? [];
      const changes = await port.socket(`?token=${token}`, { protocols: ["vite-hmr"], headers: port.token });
      expect(JSON.parse(String(await changes.next()))).toMatchObject({ type: "connected" });
      await sh("cd /root/app && sed -i s/one/two/ main.js");
      const update = JSON.parse(String(await changes.next(60_000)));
      expect(update).toMatchObject({ type: "update", updates: [{ type: "js-update", path: "/main.js" }] });
      expect(await (await port.fetch(`main.js?t=${update.updates[0].timestamp}`)).text()).toContain("two");
      changes.socket.close();
    },
    600_000,
  );
});

function pageIn(text: string): string | false {
  return text.includes("<script") && text;
}

/** A package that is installed here, with all that it needs, as a tar of its node_modules. */
function archiveOf(name: string): Buffer<ArrayBuffer> {
  const root = join(import.meta.dirname, "../..");
  const found = new Set<string>();
  const take = (from: string, each: string, isOptional: boolean) => {
    const directory = createRequire(join(from, "x.js"))
      .resolve.paths(each)
      ?.map((path) => join(path, each))
      .find((path) => existsSync(join(path, "package.json")));
    if (directory === undefined && isOptional) return;
    if (directory === undefined) throw new Error(`${each} is not installed`);
    if (found.has(directory)) return;
    found.add(directory);
    const { dependencies = {}, optionalDependencies = {} } = JSON.parse(
      readFileSync(join(directory, "package.json"), "utf8"),
    ) as Partial<Record<string, Record<string, string>>>;
    for (const needed of Object.keys(dependencies)) take(directory, needed, false);
    for (const optional of Object.keys(optionalDependencies)) take(directory, optional, true);
  };
  take(root, name, false);
  const paths = [...found].map((path) => relative(root, path));
  const tar = spawnSync("tar", ["-C", root, "-cf", "-", ...paths], { maxBuffer: 512 * 1024 ** 2 });
  if (tar.status !== 0) throw new Error(`tar: ${tar.stderr}`);
  return Buffer.from(tar.stdout);
}
