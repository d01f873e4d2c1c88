/**
 * The command-line client as an npm package: one file for Node, bundled from the sources of the binary. daemon/cli/npm-client replaces
 * modules that need Bun or the service's host.
 */
import { mkdirSync, readFileSync, rmSync } from "node:fs";
import { join } from "node:path";
import { npmTarball } from "./archive.ts";

/** Replaced modules: path in daemon, and name in daemon/cli/npm-client. */
const REPLACED: Record<string, string> = {
  "cli/host/own-host.ts": "own-host.ts",
  "cli/host/operator.ts": "operator.ts",
  "cli/host/build-on-host.ts": "build-on-host.ts",
  "cli/kit/web.ts": "web.ts",
  "host/background.ts": "background.ts",
  "host/terminal-mode.ts": "terminal-mode.ts",
};
const PROGRAM = "roomd.js";
const PACKAGE = {
  name: "roomd-cli",
  description: "The command line of roomd, for other machines than the service's own",
  license: "Apache-2.0",
  type: "module",
  engines: { node: ">=20" },
  bin: { roomd: PROGRAM },
};

/** `root` is the top of the repository, `scratch` a directory for the bundler's output. Throws the errors of the bundler. */
export async function cliTarball(
  root: string,
  scratch: string,
  { version, commit }: { version: string; commit: string },
): Promise<Uint8Array> {
  mkdirSync(scratch, { recursive: true });
  const daemon = join(root, "daemon");
  const built = await Bun.build({
    entrypoints: [join(daemon, "cli/npm-client/main.ts")],
    target: "node",
    format: "esm",
    minify: { whitespace: true, syntax: true },
    outdir: scratch,
    naming: PROGRAM,
    banner: "#!/usr/bin/env node",
    define: { ROOMD_VERSION: JSON.stringify(version), ROOMD_COMMIT: JSON.stringify(commit) },
    plugins: [
      {
        name: "client",
        setup(build) {
          build.onResolve({ filter: /^\.\.?\// }, ({ path, importer }) => {
            const found = join(importer, "..", path);
            const isOwn = importer.startsWith(join(daemon, "cli/npm-client/"));
            const name = isOwn ? undefined : REPLACED[found.slice(daemon.length + 1)];
            return name === undefined ? undefined : { path: join(daemon, "cli/npm-client", name) };
          });
        },
      },
    ],
  });
  if (!built.success) throw new Error(built.logs.join("\n"));
  const program = readFileSync(join(scratch, PROGRAM), "utf8");
  rmSync(scratch, { recursive: true });
  const bunUsage = /from ?"bun(?::\w+)?"|\bBun\.(?!\w+ is)\w+/.exec(program);
  if (bunUsage)
    throw new Error(`the client would need Bun: ${program.slice(bunUsage.index - 80, bunUsage.index + 80)}`);
  const files = {
    "package.json": `${JSON.stringify({ ...PACKAGE, version }, null, 2)}\n`,
    [PROGRAM]: program,
    LICENSE: readFileSync(join(root, "LICENSE")),
    "README.md": README,
  };
  return npmTarball(files, [PROGRAM]);
}

const README = `# roomd-cli

The command line of roomd for Linux, macOS and Windows, with Node 20 or later. Each service serves the client of the same version:

    npm install --global $ROOMD_URL/sdk/roomd-cli.tgz
    roomd login $ROOMD_URL
    roomd room list

or without installing it: \`npx $ROOMD_URL/sdk/roomd-cli.tgz room list\`. $ROOMD_URL/docs/cli.md has its page.
`;
