/**
 * The daemon's installation by packaging/quickstart, on a simulated host: namespaces that hide this host's directories and network. The
 * script, the binary and its data are real; systemd, and the install and build scripts, are small stubs. The demo is in
 * test/vm/clients/quickstart.test.ts.
 */
import { spawnSync } from "node:child_process";
import { cpSync, mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { expect, test } from "vitest";
import { BINARY } from "../harness/daemon.ts";
import { describeTemplate } from "./sandboxes/described-template.ts";

const NAMESPACES = ["unshare", "--mount", "--net", "--ipc", "--pid", "--fork", "--kill-child", "--mount-proc"];
const HIDDEN = "/etc/systemd /run /usr/local /var/lib";
const canHide = spawnSync("unshare", [...NAMESPACES, "mount", "-t", "tmpfs", "none", "/run"].slice(1)).status === 0;
const reason = canHide ? null : "namespaces cannot be made here";
if (reason !== null) console.log(`the daemon's settings in quickstart: left out, because ${reason}`);

/** As with systemd, the service gets no variable of its starter. */
const SYSTEMD_STAND_IN = `#!/bin/bash -e
case $1 in
  restart) setsid env -i PATH="$PATH" /usr/local/lib/roomd/roomd serve </dev/null >/run/journal 2>&1 & ;;
esac
`;
/** Prints the running process: its executable, then its initial environment. */
const HOST = `
cp -a /usr/local/lib/roomd/virtiofsd* "$HOME/lib/" 2>/dev/null || true
mount --bind /var/lib/dpkg "$HOME/dpkg"
for hidden in ${HIDDEN}; do mount -t tmpfs none $hidden; done
mkdir /var/lib/dpkg && mount --bind "$HOME/dpkg" /var/lib/dpkg
[ ! -d /etc/roomd ] || mount -t tmpfs none /etc/roomd
ip link set lo up
mkdir -p /run/systemd/system /etc/systemd/system /usr/local/bin /usr/local/lib /var/lib/roomd
mv "$HOME/lib" /usr/local/lib/roomd
mv "$HOME/bin/systemctl" /usr/local/bin/
cp -r "$HOME/templates" /var/lib/roomd/
quickstart() { env "$@" "$HOME/packaging/quickstart" --no-demo; }
show() {
  pid=$(cat /run/roomd/daemon.lock)
  echo "runs $(readlink /proc/$pid/exe)"
  tr '\\0' '\\n' <"/proc/$pid/environ" | sed -n 's/^ROOMD_/with &/p'
}
end() {
  kill "$(cat /run/roomd/daemon.lock)"
  flock /run/roomd/daemon.lock true
}
`;

/** Runs a script on such a host. Returns its output. */
function onHost(script: string): string {
  const home = mkdtempSync("/tmp/roomd-t-");
  try {
    for (const each of ["packaging", "dist", "bin", "lib", "dpkg"]) mkdirSync(join(home, each));
    for (const each of ["daemon", "node_modules", "shared"]) symlinkSync(resolve(each), join(home, each));
    symlinkSync(resolve("packaging/systemd"), join(home, "packaging/systemd"));
    for (const each of ["roomd", "roomd-agent"]) symlinkSync(resolve(BINARY, "..", each), join(home, "dist", each));
    cpSync("packaging/quickstart", join(home, "packaging/quickstart"));
    for (const each of ["install-host", "build"])
      writeFileSync(join(home, "packaging", each), "#!/bin/sh\n", { mode: 0o755 });
    writeFileSync(join(home, "bin/systemctl"), SYSTEMD_STAND_IN, { mode: 0o755 });
    describeTemplate({ dataDir: home });
    const [command = "", ...argv] = [...NAMESPACES, "bash", "-e", "-o", "pipefail", "-c", HOST + script];
    const { status, stdout, stderr } = spawnSync(command, argv, {
      env: { HOME: home, PATH: process.env.PATH },
      encoding: "utf8",
      timeout: 60_000,
    });
    expect([status, status === 0 ? "" : stdout + stderr]).toEqual([0, ""]);
    return stdout;
  } finally {
    rmSync(home, { recursive: true, force: true });
  }
}

test.skipIf(reason !== null)("environment variables of a client configure no daemon, and reach none", () => {
  const clients =
    "ROOMD_CA_CERT=/nowhere/cert.pem ROOMD_OPERATOR_KEY=key-operator ROOMD_URL=http://127.0.0.1:1 ROOMD_API_KEY=key-x";
  const output = onHost(`
    quickstart ${clients} ROOMD_TEMPLATE_MIRROR=http://127.0.0.1:1/debian
    show
    end
    cmp /etc/systemd/system/roomd.service packaging/systemd/roomd.service
    quickstart ${clients} ROOMD_LOG_LEVEL=debug
    show
    end
  `);
  const [service = "", own = ""] = output.split("[1/4]").slice(1);
  expect(service).toMatch(/\nexport ROOMD_URL=http:\/\/127\.0\.0\.1:8080\nexport ROOMD_API_KEY=key-\S+\nruns /);
  expect(service).toMatch(/\nruns \/usr\/local\/lib\/roomd\/roomd\n$/);
  expect(own).toMatch(/\nruns \S+\/dist\/roomd\nwith ROOMD_LOG_LEVEL=debug\n$/);
  // Nor is there anything of the demo.
  expect(output).not.toContain("demo");
});

test.skipIf(reason !== null)("`roomd uninstall` lists its steps, and leaves nothing with --purge", () => {
  const output = onHost(`
    quickstart A=b
    roomd() { /usr/local/bin/roomd "$@"; }
    ! roomd uninstall --purge 2>&1
    echo "refused once"
    ! ROOMD_DATA_DIR=/tmp/other roomd uninstall --purge --yes 2>&1
    kill -0 "$(cat /run/roomd/daemon.lock)" && echo "runs still"
    roomd uninstall --yes && ls -A /var/lib/roomd
    quickstart A=b | grep -c "it is there; its key is in"
    echo "by itself" >/var/lib/roomd/notes
    roomd uninstall --purge --yes
    find ${HIDDEN} /etc/roomd \\( -name '*roomd*' -o -path '*/roomd/*' \\) -not -path '/var/lib/dpkg/*' 2>/dev/null || true
  `);
  const [steps = "", foreign = "", kept = ""] = output.split(/refused once|runs still/);
  expect(steps).toContain("/var/lib/roomd");
  expect(foreign).toContain("ROOMD_DATA_DIR");
  expect(kept).toMatch(/\nroomd\.db\n(.*\n)*setup\.env\n/);
  // Files of others stay, and so does their directory.
  const [installed, ended, ...left] = kept.trimEnd().split("\n").slice(-4);
  expect([installed, left]).toEqual(["1", ["/var/lib/roomd", "/var/lib/roomd/notes"]]);
  expect(ended).toMatch(/\b0 sandboxes\b/);
});
