/**
 * Templates from images: a root without any libc, of layers as builders and attackers make them, is unpacked in a guest and used like any
 * other. Refused images take most of a minute each, so they run if ROOMD_TEST_LONG is 1.
 */
import { mkdirSync, readdirSync, readFileSync, readlinkSync, rmSync, writeFileSync } from "node:fs";
import { basename, dirname, join } from "node:path";
import { stringify } from "smol-toml";
import { describe, expect, test } from "vitest";
import { since } from "../../harness/changed-files.ts";
import { run as runHere, SshClient, sshPort } from "../../harness/clients/ssh-client.ts";
import { BINARY, type Json, SHARED_TEMPLATES, type TestDaemon } from "../../harness/daemon.ts";
import { readStream } from "../../harness/event-loop/streams.ts";
import { freePort } from "../../harness/free-port.ts";
import { LONG, testAlone, withGuests } from "../../harness/guests.ts";
import { ownTemplates } from "../../harness/images/built-templates.ts";
import { ImageRegistry } from "../../harness/images/image-registry.ts";
import { busyboxRoot, type Entry, type ImageConfig, type Layer, writeImage } from "../../harness/images/oci-image.ts";
import { OUTSIDE_PORTS, Outside } from "../../harness/images/outside.ts";

const IMPORT_MS = 480_000;
const prepare = async (daemon: TestDaemon) => void ownTemplates(daemon);

/** cap_net_raw, effective and permitted, as the kernel keeps it (linux/capability.h, version 2): all bytes are characters of their own. */
const CAPABILITY = "\x01\x00\x00\x02\x00 \x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00";

const FIRST: Layer = [
  ...busyboxRoot(),
  { name: "etc/passwd", content: "root:x:0:0::/root:/bin/sh\napp:x:1000:1000::/home/app:/bin/sh\n" },
  { name: "etc/group", content: "root:x:0:\nstaff:x:50:\n" },
  { name: "opt/removed", content: "old" },
  { name: "opt/changed", content: "old" },
  { name: "opt/target", content: "linked" },
  { name: "opt/great", content: "great", uid: 70_000, gid: 80_000, mode: 0o4755 },
  { name: "opt/ping", content: "ping", mode: 0o755, pax: { "SCHILY.xattr.security.capability": CAPABILITY } },
  { name: "opt/pipe", type: "fifo" },
  { name: "opt/null", type: "character-device", devmajor: 1, devminor: 3 },
  { name: "hidden/older", content: "old" },
  { name: "way", type: "symlink", linkname: "/" },
];
const SECOND: Entry[] = [
  { name: "opt/.wh.removed", content: "" },
  { name: "opt/changed", content: "new" },
  { name: "opt/changed", content: "newer" },
  { name: "opt/hard", type: "link", linkname: "opt/target" },
  { name: "hidden/newer", content: "new" },
  { name: "hidden/.wh..wh..opq", content: "" },
  { name: "/opt/absolute", content: "absolute" },
  { name: "../../opt/above", content: "above" },
  { name: "way/opt/through", content: "through" },
];
const CONFIG: ImageConfig = {
  Env: ["PATH=/bin", "HELLO=there", "ROOMD_ROOM_ID=none"],
  WorkingDir: "/srv/app",
  User: "app:staff",
  Entrypoint: ["/bin/sh", "-c", "echo ran >/opt/entrypoint"],
};

async function importImage(daemon: TestDaemon, name: string, reference: string, ...more: string[]) {
  const { status, stdout, stderr } = await daemon.cli([
    "template",
    "import",
    name,
    reference,
    "--disk",
    "1024",
    "--json",
    ...more,
  ]);
  return { status, said: JSON.parse(stdout || stderr) };
}

testAlone(
  "an image with root-owned files becomes a template, and commands use its configuration",
  { prepare },
  async (daemon) => {
    // The second is there twice, as layers are with nothing in them.
    const second: Layer = { entries: SECOND, packed: "zstd" };
    const reference = await writeImage(join(daemon.home, "image"), [FIRST, second, second], CONFIG);
    const index = JSON.parse(readFileSync(join(daemon.home, "image", "index.json"), "utf8"));
    using before = since();
    const { status, said } = await importImage(daemon, "foreign", reference);
    // By the image's file names: other programs on this host write files concurrently.
    const cache = join(dirname(SHARED_TEMPLATES), "template-cache");
    const ofImage = new Set(SECOND.map(({ name }) => basename(name)));
    const changed = before.changed([daemon.home, process.cwd(), cache, "/root/.cache", "/root/.npm"]);
    expect(changed.filter((path) => ofImage.has(basename(path)))).toEqual([]);
    expect([status, said]).toMatchObject([
      0,
      {
        template_id: "foreign",
        source: { ref: reference, index_digest: null, manifest_digest: index.manifests[0].digest },
      },
    ]);
    expect(daemon.leftovers()).toEqual([]);

    await daemon.room("r");
    const made = await daemon.api("POST", "/v1/rooms/r/sandboxes/from-template", {
      ...{ agent_id: "a", guest_cid: 9100, template_id: "foreign", memory_mib: 256 },
    });
    expect([made.status, made.body.start_mode]).toEqual([201, "snapshot"]);
    const run = async (argv: string[], more = {}) => {
      const { exit_code, stdout, stderr } = await daemon.exec("r", "a", { argv, ...more });
      return [exit_code, `${stdout}${stderr}`.trim()];
    };
    const sh = async (command: string, more = {}) => await run(["/bin/sh", "-c", command], more);

    expect(await sh("id; pwd; echo $HELLO $ROOMD_ROOM_ID $PATH $LD_LIBRARY_PATH")).toEqual([
      0,
      "uid=1000(app) gid=50(staff)\n/srv/app\nthere r /bin:/usr/local/bin",
    ]);
    expect(await sh("id -u; pwd; touch /mnt/drive/of-root", { user: "root", cwd: "/opt" })).toEqual([0, "0\n/opt"]);
    expect(await run(["nosuch"])).toEqual([127, expect.stringContaining("nosuch")]);
    // The layers' contents, and no path that leads out.
    expect(await sh("cat changed hard absolute above through; stat -c '%u %g %a' great; ls", { cwd: "/opt" })).toEqual([
      0,
      "newerlinkedabsoluteabovethrough70000 80000 4755\nabove\nabsolute\nchanged\ngreat\nhard\nnull\nping\npipe\ntarget\nthrough",
    ]);
    expect(await sh("ls /hidden; stat -c '%F' /opt/pipe /opt/null; ls -d /lost+found /.roomd*; ls /usr/lib")).toEqual([
      0,
      expect.stringMatching(/^newer\nfifo\ncharacter special file\nroomd\nls: \/lost\+found: .*\nls: \/\.roomd\*: .*$/),
    ]);
    // An absent image, and a registry that does not answer.
    expect(await importImage(daemon, "none", `oci:${join(daemon.home, "none")}`)).toMatchObject({
      status: 1,
      said: { code: "image_not_found" },
    });
    expect(await importImage(daemon, "none", "docker://127.0.0.1:1/app")).toMatchObject({
      status: 1,
      said: { code: "build_failed", details: { step: "pull", last_lines: [expect.stringContaining("refused")] } },
    });
    // The room and the network are there as in any other.
    expect(await sh("room whoami")).toEqual([0, "a in r"]);
    expect(await sh("wget -q -O - http://198.51.100.1/", { user: "root" })).toEqual([
      1,
      expect.stringContaining("403 Forbidden"),
    ]);
    // The image has no rsync.
    using client = new SshClient(sshPort(daemon));
    await daemon.ok("POST", "/v1/orgs/self/ssh-keys", { public_key: client.publicKey });
    writeFileSync(join(client.home, "a file"), "by rsync");
    const rsync = async (from: string, to: string) => {
      const { status, stderr } = await runHere("rsync", ["-a", "-e", `${client.command} -l a@r`, from, to]);
      expect([status, stderr]).toEqual([0, ""]);
    };
    await rsync(join(client.home, "a file"), "127.0.0.1:/tmp/synced/");
    await rsync("127.0.0.1:/tmp/synced/", join(client.home, "back/"));
    expect(readFileSync(join(client.home, "back", "a file"), "utf8")).toBe("by rsync");
    await daemon.ok("DELETE", "/v1/rooms/r?drive=delete");
    expect(daemon.leftovers()).toEqual([]);
  },
  IMPORT_MS,
);

const MIB = 1024 ** 2;
const ZEROS = Buffer.alloc(64 * MIB);
/** More than the disk has. */
const manyZeros = (nameOf: (at: number) => string): Entry[] =>
  Array.from({ length: 17 }, (_, at) => ({ name: nameOf(at), content: ZEROS }));

/** Refused images: the error code, and the reported reason. */
const REFUSED: readonly [string, () => Layer[], string, RegExp][] = [
  [
    "a layer whose content does not match its digest",
    () => [{ entries: busyboxRoot(), stored: Buffer.from("not what was said") }],
    "image_invalid",
    /digest/i,
  ],
  [
    "a layer whose unpacked content does not match the configuration",
    () => [{ entries: busyboxRoot(), diffId: `sha256:${"0".repeat(64)}` }],
    "image_invalid",
    /diffid|digest/i,
  ],
  ["a layer that is not an archive", () => [{ entries: [], stored: Buffer.alloc(4096, 7) }], "image_invalid", /./],
  [
    "a small layer that unpacks to more than the disk",
    () => [[...busyboxRoot(), ...manyZeros((at) => `z${at}`)]],
    "image_too_large",
    /no space left/i,
  ],
  [
    "a small layer of zstd that unpacks to more than the disk",
    () => [{ entries: [...busyboxRoot(), ...manyZeros((at) => `z${at}`)], packed: "zstd" }],
    "image_too_large",
    /no space left/i,
  ],
  [
    "a small layer of zstd that unpacks to more than the disk, into one file",
    () => [{ entries: [...busyboxRoot(), ...manyZeros(() => "z")], packed: "zstd" }],
    "image_too_large",
    /no space left/i,
  ],
  [
    "a layer of zstd whose unpacked content does not match the configuration",
    () => [{ entries: busyboxRoot(), packed: "zstd", diffId: `sha256:${"0".repeat(64)}` }],
    "image_invalid",
    /digest/i,
  ],
  [
    "more files than fit on the disk",
    () => [[...busyboxRoot(), ...Array.from({ length: 80_000 }, (_, at): Entry => ({ name: `f${at}`, content: "" }))]],
    "image_too_large",
    /no space left/i,
  ],
  [
    "a program that no kernel of ours runs as the first",
    () => [[{ name: "usr", type: "symlink", linkname: "/proc" }]],
    "image_invalid",
    /./,
  ],
];

if (!LONG) console.log("refused images: left out, because they take minutes: ROOMD_TEST_LONG=1 runs them");

describe.skipIf(!LONG)("long tests", () => {
  let ofOrgs: number;
  const named = async (daemon: TestDaemon) => {
    ofOrgs = await freePort();
    daemon.env.ROOMD_TEMPLATE_REGISTRIES = `*, localhost:${ofOrgs}`;
    await prepare(daemon);
  };
  withGuests("images", { prepare: named }, (guests) => {
    test.each(REFUSED)(
      "%s is refused without leftovers",
      async (_name, layers, code, expected) => {
        const { daemon } = guests;
        const reference = await writeImage(join(daemon.home, crypto.randomUUID()), layers());
        const { status, said } = await importImage(daemon, "refused", reference);
        expect([status, said]).toMatchObject([1, { code }]);
        expect(said.details.last_lines.join("\n")).toMatch(expected);
        expect(readdirSync(join(daemon.dataDir, "templates", "refused"))).toEqual([]);
        expect(daemon.leftovers()).toEqual([]);
      },
      IMPORT_MS,
    );

    test(
      "an image without a shell runs programs, reports the missing shell, and has the network",
      async () => {
        const { daemon } = guests;
        const program = busyboxRoot().find(({ name }) => name === "bin/busybox");
        const reference = await writeImage(join(daemon.home, "without"), [
          [
            { ...program, name: "busybox" },
            { name: "etc/resolv.conf", type: "symlink", linkname: "../run/systemd/resolve/stub-resolv.conf" },
          ],
        ]);
        expect(await importImage(daemon, "without", reference)).toMatchObject({ status: 0 });
        await daemon.room("w");
        const sandbox = { agent_id: "a", guest_cid: guests.cid(), template_id: "without", memory_mib: 256 };
        await daemon.ok("POST", "/v1/rooms/w/sandboxes/from-template", sandbox);
        const run = async (...argv: string[]) => await daemon.exec("w", "a", { argv });
        expect(await run("/busybox", "cat", "/etc/resolv.conf")).toMatchObject({
          ...{ exit_code: 0, stdout: expect.stringMatching(/^nameserver 127\.0\.0\.53\n/) },
        });
        expect(await run("/busybox", "wget", "-qO-", "http://198.51.100.1/")).toMatchObject({
          ...{ exit_code: 1, stderr: expect.stringContaining("403 Forbidden") },
        });
        expect(await daemon.exec("w", "a", { command: "true" })).toMatchObject({
          ...{ exit_code: 127, stderr: expect.stringContaining("/bin/sh") },
        });
        expect(await run("room", "whoami")).toMatchObject({ exit_code: 0, stdout: "a in w\n" });
        await daemon.ok("DELETE", "/v1/rooms/w?drive=delete");
      },
      IMPORT_MS,
    );

    test(
      "steps run in their own sandbox, reach only their allowlist, and leave no secret",
      async () => {
        const { daemon } = guests;
        await using outside = await Outside.start(["allowed.example", "other.example"]);
        daemon.env.ROOMD_EGRESS_HOSTS_FILE = outside.hostsFile;
        outside.setHosts({ "allowed.example": outside.v4, "other.example": outside.v4 });
        writeFileSync(join(outside.root, "package"), "of the outside\n");
        const from = await writeImage(join(daemon.home, "with-steps"), [busyboxRoot()], {
          ...{ Env: ["HELLO=there"], WorkingDir: "/srv", User: "4321" },
        });
        const secret = `secret-${crypto.randomUUID()}`;
        writeFileSync(join(daemon.home, "token"), secret);
        const build = async (name: string, steps: string[]) => {
          const recipe = join(daemon.home, `${name}.toml`);
          const rest = { template_id: name, description: "", tools: [], min_memory_mib: 256, default_memory_mib: 256 };
          const egress_allowlist = [`allowed.example:${OUTSIDE_PORTS.http}`];
          const start = "echo started >/opt/started";
          writeFileSync(recipe, stringify({ ...rest, from, disk_mib: 1024, start, egress_allowlist, steps }));
          const token = `token=${join(daemon.home, "token")}`;
          const argv = ["template", "build", name, "--recipe", recipe, "--secret", token, "--verbose", "--json"];
          const { status, stdout, stderr } = await daemon.cli(argv);
          const last = stderr.trim().split("\n").at(-1) ?? "";
          return { status, said: JSON.parse(stdout || last), stderr };
        };
        const get = (host: string) => `wget -qO /opt/package http://${host}:${OUTSIDE_PORTS.http}/package`;
        const nothingLeft = (name: string) => {
          expect(readdirSync(join(daemon.dataDir, "templates", name))).toEqual([]);
          expect(daemon.leftovers()).toEqual([]);
        };

        const command = "echo one $HELLO $PWD $(id -u) $(cat /run/secrets/token | head -c 7) >/opt/told";
        const { status, said, stderr } = await build("stepped", [
          `set -e; [ ! -e /opt/started ]; busybox mkdir -p /opt; ${command}; ${get("allowed.example")}`,
          "echo two\necho of two >&2; echo two >>/opt/told",
        ]);
        expect([status, said]).toMatchObject([0, { template_id: "stepped", source: expect.anything() }]);
        expect(stderr).toMatch(/1 of 2\b.*set -e[\s\S]*2 of 2\b.*echo two\n[\s\S]* two\n[\s\S]* of two\n/);
        expect(daemon.leftovers()).toEqual([]);
        await daemon.room("t");
        const sandbox = { agent_id: "a", guest_cid: guests.cid(), template_id: "stepped", memory_mib: 256 };
        await daemon.ok("POST", "/v1/rooms/t/sandboxes/from-template", sandbox);
        expect(await daemon.sh("t", "a", "cat /opt/told /opt/package /opt/started; ls /run/secrets 2>&1 || true")).toBe(
          "one there /srv 0 secret-\ntwo\nof the outside\nstarted\nls: /run/secrets: No such file or directory",
        );
        // The disk that the steps left was marked clean.
        const argv = ["/usr/lib/roomd/bin/busybox", "dmesg"];
        const { stdout: kernel } = await daemon.exec("t", "a", { argv, user: "root" });
        expect(kernel).toMatch(/EXT4-fs \(vda\): mounted/);
        expect(kernel).not.toMatch(/unchecked|recovery/);
        const search = Bun.spawn(["grep", "-rlazF", secret, daemon.dataDir, daemon.runtimeDir], { stdout: "pipe" });
        expect([await search.stdout.text(), await search.exited]).toEqual(["", 1]);

        await daemon.ok("DELETE", "/v1/rooms/t?drive=delete");
        const failing = await build("failing", ["true", "echo out; echo err >&2; exit 3", "true"]);
        expect(failing).toMatchObject({
          status: 1,
          said: { code: "build_failed", details: { step: "step 2", last_lines: ["out", "err"] } },
        });
        nothingLeft("failing");
        const refused = await build("refused", [get("other.example")]);
        const destination = `other.example:${OUTSIDE_PORTS.http}`;
        expect(refused).toMatchObject({
          status: 1,
          said: { code: "build_failed", details: { step: "step 1", refused: [destination] } },
        });
        expect(refused.stderr).toContain(destination);
        nothingLeft("refused");
      },
      2 * IMPORT_MS,
    );

    test(
      "a Dockerfile is built step by step, and commands use its configuration",
      async () => {
        const { daemon } = guests;
        const context = join(daemon.home, "context");
        mkdirSync(join(context, "src"), { recursive: true });
        writeFileSync(join(context, "src", "script"), "echo of the context\n");
        writeFileSync(join(context, "src", "other"), "other");
        writeFileSync(join(context, ".dockerignore"), "**/other\n");
        const root = [
          ...busyboxRoot(),
          { name: "etc/passwd", content: "root:x:0:0::/root:/bin/sh\napp:x:70:70::/:/bin/sh\n" },
        ];
        const from = await writeImage(join(daemon.home, "of-dockerfile"), [root], {
          Env: ["FIRST=1"],
          Entrypoint: ["no"],
        });
        writeFileSync(
          join(context, "Dockerfile"),
          [
            "ARG FROM",
            "FROM $FROM",
            "ARG WHO=nobody",
            // A step that takes this long is cached for the next build.
            "RUN sleep 11",
            // biome-ignore lint/suspicious/noTemplateCurlyInString: it is a Dockerfile's
            "RUN echo $WHO $FIRST ${SECOND:-none} >/told",
            "ENV SECOND=2",
            "WORKDIR /srv/app",
            "COPY --chown=app src ./",
            "COPY src/script /bin/renamed",
            "USER app",
            'RUN ["sh", "-c", "id -u >mine && pwd"]',
            'ENTRYPOINT ["sh", "-c", "echo up >up; while :; do sleep 1; done"]',
          ].join("\n"),
        );
        const build = async (...more: string[]) => {
          const of = ["--dockerfile", join(context, "Dockerfile"), "--disk", "1024", "--memory", "256", "--json"];
          const argv = ["template", "build", "filed", ...of, "--verbose", ...more];
          const { status, stdout, stderr } = await daemon.cli(argv);
          return { status, said: JSON.parse(stdout || (stderr.trim().split("\n").at(-1) ?? "")), stderr };
        };
        // The directory belongs to root, as elsewhere.
        const failed = await build("--build-arg", `FROM=${from}`);
        expect(failed).toMatchObject({
          ...{ status: 1, said: { code: "build_failed", details: { step: "step 6" } } },
        });
        expect(failed.said.details.last_lines.join("\n")).toContain("denied");
        const file = readFileSync(join(context, "Dockerfile"), "utf8");
        writeFileSync(join(context, "Dockerfile"), file.replace("COPY --chown", "RUN chmod 777 .\nCOPY --chown"));
        const built = await build("--build-arg", `FROM=${from}`, "--build-arg", "WHO=somebody", "--start");
        expect(built).toMatchObject({ status: 0, said: { template_id: "filed", source: { ref: from } } });
        await daemon.room("f");
        const sandbox = { agent_id: "a", guest_cid: guests.cid(), template_id: "filed", memory_mib: 256 };
        await daemon.ok("POST", "/v1/rooms/f/sandboxes/from-template", sandbox);
        const command =
          "pwd; id -u; echo $FIRST $SECOND $WHO; cat /told mine script /bin/renamed up; stat -c '%u %n' *";
        expect(await daemon.sh("f", "a", command)).toBe(
          "/srv/app\n70\n1 2\nsomebody 1 none\n70\necho of the context\necho of the context\nup\n70 mine\n70 script\n70 up",
        );
        await daemon.ok("DELETE", "/v1/rooms/f?drive=delete");

        // An unchanged step is not run again; steps after a change are, and all of them on request.
        const runsFirst = /\b1 of 8\b/;
        const same = ["--build-arg", `FROM=${from}`, "--build-arg", "WHO=somebody", "--start"];
        const again = await build(...same);
        expect(again).toMatchObject({
          status: 0,
          stderr: expect.stringMatching(/\b1 to 8\b/),
        });
        expect(again.stderr).not.toMatch(/\b\d of 8\b/);
        writeFileSync(join(context, "src", "script"), "echo of another context\n");
        const changed = await build(...same);
        expect(changed).toMatchObject({
          status: 0,
          stderr: expect.stringMatching(/\b1 to [1-4]\b/),
        });
        expect(changed.stderr).not.toMatch(runsFirst);
        await daemon.room("f");
        await daemon.ok("POST", "/v1/rooms/f/sandboxes/from-template", { ...sandbox, guest_cid: guests.cid() });
        expect(await daemon.sh("f", "a", command)).toBe(
          "/srv/app\n70\n1 2\nsomebody 1 none\n70\necho of another context\necho of another context\nup\n70 mine\n70 script\n70 up",
        );
        await daemon.ok("DELETE", "/v1/rooms/f?drive=delete");
        const anew = await build(...same, "--no-cache");
        expect(anew).toMatchObject({ status: 0, stderr: expect.stringMatching(runsFirst) });
        expect(daemon.leftovers()).toEqual([]);
      },
      3 * IMPORT_MS,
    );

    test(
      "an import that is killed at any step is cleaned up by the next import",
      async () => {
        const { daemon } = guests;
        const reference = await writeImage(join(daemon.home, "to-kill"), [busyboxRoot()]);
        const home = join(daemon.dataDir, "templates", "killed");
        for (const step of ["fetching", "unpacking", "booting", "testing", null]) {
          const child = Bun.spawn([BINARY, "template", "import", "killed", reference, "--verbose", "--json"], {
            ...{ env: daemon.env, stdout: "ignore", stderr: "pipe" },
          });
          let output = "";
          for await (const chunk of child.stderr) {
            output += new TextDecoder().decode(chunk);
            if (step !== null && output.includes(step)) child.kill("SIGKILL");
          }
          expect([step, await child.exited]).toEqual([step, step === null ? 0 : 137]);
        }
        expect(readdirSync(home).sort()).toEqual([readlinkSync(join(home, "current")), "current", "recipe.json"]);
        expect(daemon.leftovers()).toEqual([]);
      },
      2 * IMPORT_MS,
    );

    test(
      "an image is pulled with credentials, which are stored nowhere",
      async () => {
        const { daemon } = guests;
        const registry = await ImageRegistry.start(join(daemon.home, "registry"));
        try {
          await registry.push(await writeImage(join(daemon.home, "to-push"), [busyboxRoot()]), "team/app:1");
          const reference = `docker://${registry.host}/team/app:1`;
          const file = join(daemon.home, "auth.json");
          const refused = async (...more: string[]) =>
            (await importImage(daemon, "pulled", reference, ...more)).said.code;
          expect(await refused()).toBe("image_unauthorized");
          writeFileSync(file, registry.auth("wrong"));
          expect(await refused("--registry-auth", file)).toBe("image_unauthorized");
          writeFileSync(file, registry.auth());
          const none = await importImage(
            daemon,
            "none",
            `docker://${registry.host}/team/none:1`,
            "--registry-auth",
            file,
          );
          expect(none.said.code).toBe("image_not_found");

          const { status, said } = await importImage(daemon, "pulled", reference, "--registry-auth", file);
          const digest = expect.stringMatching(/^sha256:[0-9a-f]{64}$/);
          const source = { ref: reference, index_digest: null, manifest_digest: digest, config_digest: digest };
          expect([status, said]).toMatchObject([0, { template_id: "pulled", source }]);
          // The image that the tag names by then.
          const newer = await writeImage(join(daemon.home, "to-push-later"), [busyboxRoot()], { Env: ["NEWER=yes"] });
          await registry.push(newer, "team/app:1");
          const again = await daemon.cli(["template", "refresh", "pulled", "--registry-auth", file, "--json"]);
          const { source: then } = JSON.parse(again.stdout || again.stderr);
          expect([again.status, then]).toMatchObject([0, { ref: reference, manifest_digest: digest }]);
          expect(then.manifest_digest).not.toBe(said.source.manifest_digest);
          rmSync(file);
          const [secret = ""] = /"auth":"[^"]+/.exec(registry.auth()) ?? [];
          for (const text of [registry.password, secret.slice('"auth":"'.length)]) {
            const search = Bun.spawn(["grep", "-rlazF", text, daemon.dataDir, daemon.runtimeDir], { stdout: "pipe" });
            expect([await search.stdout.text(), await search.exited]).toEqual(["", 1]);
          }
          expect(daemon.leftovers().filter((left) => !left.includes("docker-registry"))).toEqual([]);
        } finally {
          registry.close();
        }
      },
      IMPORT_MS,
    );

    test(
      "an organization starts a build, follows it, and creates sandboxes from it",
      async () => {
        const { daemon } = guests;
        const registry = await ImageRegistry.start(join(daemon.home, "registry-of-orgs"), ofOrgs);
        try {
          const image = await writeImage(join(daemon.home, "to-push-too"), [busyboxRoot()], { Env: ["OF=image"] });
          await registry.push(image, "team/app:1");
          const secret = `secret-${crypto.randomUUID()}`;
          const step = 'test "$(head -c 7 /run/secrets/token)" = secret- && echo "$OF" >/made';
          const accepted = await daemon.ok("POST", "/v1/templates", {
            ...{ template_id: "ours", disk_mib: 1024, default_memory_mib: 256, registry_auth: registry.auth() },
            from: { recipe: { from: `docker://${registry.host}/team/app:1`, steps: [step, "echo second >>/made"] } },
            ...{ secrets: { token: secret }, start: "echo started >/started", ready: "test -f /started" },
          });
          const path = `/v1/templates/ours/builds/${accepted.build_id}`;
          const { events } = await readStream(daemon, path);
          const states = events.filter(({ type }: Json) => type === "state").map(({ state }: Json) => state);
          expect(states).toEqual(["pulling", "building", "booting", "testing"]);
          const lines = events.flatMap(({ data_b64 }: Json) => (data_b64 ? [atob(data_b64).trim()] : []));
          for (const run of [step, "echo second >>/made"]) {
            expect(lines).toContainEqual(expect.stringContaining(run));
          }
          expect(events.at(-1)).toMatchObject({ type: "exit", exit_code: 0, state: "ready", failure: null });
          const record = await daemon.ok("GET", "/v1/templates/ours");
          expect(record).toMatchObject({ visibility: "org", digest: events.at(-1)?.digest });

          await daemon.room("of-org");
          const sandbox = { agent_id: "a", guest_cid: guests.cid(), template_id: "ours", memory_mib: 256 };
          const made = await daemon.api("POST", "/v1/rooms/of-org/sandboxes/from-template", sandbox);
          expect([made.status, made.body.start_mode]).toEqual([201, "snapshot"]);
          const argv = ["/bin/sh", "-c", "cat /made /started; ls /run/secrets"];
          expect((await daemon.exec("of-org", "a", { argv })).stdout).toBe("image\nsecond\nstarted\n");
          // The sandbox continues without its template.
          await daemon.ok("DELETE", "/v1/templates/ours");
          expect((await daemon.exec("of-org", "a", { argv: ["/bin/cat", "/made"] })).exit_code).toBe(0);
          await daemon.ok("DELETE", "/v1/rooms/of-org?drive=delete");

          const [auth = ""] = /"auth":"[^"]+/.exec(registry.auth()) ?? [];
          for (const text of [secret, registry.password, auth.slice('"auth":"'.length)]) {
            const search = Bun.spawn(["grep", "-rlazF", text, daemon.dataDir, daemon.runtimeDir], { stdout: "pipe" });
            expect([await search.stdout.text(), await search.exited]).toEqual(["", 1]);
          }
          expect(daemon.leftovers().filter((left) => !left.includes("docker-registry"))).toEqual([]);
        } finally {
          registry.close();
        }
      },
      IMPORT_MS,
    );

    test(
      "output of docker save is accepted on standard input",
      async () => {
        const { daemon } = guests;
        const archive = join(daemon.home, "saved.tar");
        const counting = "while :; do n=$((n + 1)); echo $n >/tmp/.count && mv /tmp/.count /tmp/count; sleep 1; done";
        const reference = await writeImage(join(daemon.home, "to-save"), [busyboxRoot()], {
          ...{ Entrypoint: ["/bin/sh", "-c"], Cmd: [counting], User: "4321" },
        });
        const save = Bun.spawn(["skopeo", "--insecure-policy", "copy", reference, `docker-archive:${archive}:mine:1`]);
        expect(await save.exited).toBe(0);
        const child = Bun.spawn(
          [BINARY, "template", "import", "saved", "-", "--start", "--ready", "cat /tmp/count", "--json"],
          {
            env: daemon.env,
            stdin: Bun.file(archive),
            stdout: "pipe",
            stderr: "pipe",
          },
        );
        expect([await child.exited, await child.stderr.text()]).toEqual([0, ""]);
        expect(JSON.parse(await child.stdout.text())).toMatchObject({
          template_id: "saved",
          source: expect.anything(),
        });
        await daemon.room("s");
        const sandbox = { agent_id: "a", guest_cid: guests.cid(), template_id: "saved", memory_mib: 256 };
        await daemon.ok("POST", "/v1/rooms/s/sandboxes/from-template", sandbox);
        expect(await daemon.sh("s", "a", "id -u; pwd")).toBe("4321\n/");
        const moves = "stat -c %u /tmp/count; n=$(cat /tmp/count); sleep 3; [ $(cat /tmp/count) -gt $n ] && echo moves";
        expect(await daemon.sh("s", "a", moves)).toBe("4321\nmoves");

        writeFileSync(join(daemon.home, "garbage.tar"), ZEROS.subarray(0, MIB));
        const garbage = await importImage(daemon, "garbage", `docker-archive:${join(daemon.home, "garbage.tar")}`);
        expect(garbage).toMatchObject({ status: 1, said: { code: "image_invalid" } });
      },
      IMPORT_MS,
    );
  });
});
