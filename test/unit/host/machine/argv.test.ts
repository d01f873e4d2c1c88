/** The command lines of a guest's processes: typed values, each in its place, whatever a path holds. */
import { expect, test } from "vitest";
import { deviceArgv } from "../../../../daemon/host/guest-link/transports/vhost-user.ts";
import { qemuArgv } from "../../../../daemon/host/machine/argv.ts";
import type { MachineSpec } from "../../../../daemon/host/machine/spec.ts";
import { shareArgv } from "../../../../daemon/host/virtiofs/share.ts";

const NASTY = "/a,b=c,,share=off\n-device x,id=\"'`$(id);%s\\ \u202e😀";

function specOf(path: string): MachineSpec {
  return {
    name: "sbx_1",
    uuid: "7b1f1c0e-1f0f-4a4e-9d8c-0c4d6f3b2a10",
    hardware: {
      machine_type: "pc-q35-10.0",
      cpu_model: "max",
      base_memory_mib: 256,
      max_plugged_mib: 1024,
      acceleration: "tcg",
      drive_ports: 2,
      returns_memory: true,
    },
    vcpu_count: 2,
    kernel: path,
    initramfs: path,
    append: "console=ttyS0",
    disk: path,
    sockets: { qmp: path, qmp_spare: path, console: path },
    user: null,
    root: null,
    vsock_file: null,
    incoming: true,
  };
}

/** Splits at single commas and joins doubled ones, which is how QEMU reads an option. */
const fieldsOf = (option: string) =>
  option
    .replaceAll(",,", "\0")
    .split(",")
    .map((field) => field.replaceAll("\0", ","));

test("a path in QEMU's command line is one value of one option, or an argument of its own", () => {
  const plain = qemuArgv("qemu", specOf("/plain"));
  const odd = qemuArgv("qemu", specOf(NASTY));
  expect(odd).toHaveLength(plain.length);
  for (const [index, word] of plain.entries()) {
    // Kernel and initramfs are words; the others are options.
    const expected = word === "/plain" ? [NASTY] : fieldsOf(word).map((field) => field.replace("/plain", () => NASTY));
    expect(word === "/plain" ? [odd[index]] : fieldsOf(odd[index] ?? "")).toEqual(expected);
  }
});

test("QEMU has no default devices, cannot gain rights or processes, and shares memory with its back ends", () => {
  const argv = qemuArgv("qemu", specOf("/plain"));
  const after = (flag: string) => argv.flatMap((word, index) => (word === flag ? [argv[index + 1]] : []));
  expect(after("-sandbox")).toEqual(["on,obsolete=deny,elevateprivileges=deny,spawn=deny,resourcecontrol=deny"]);
  for (const flag of ["-nodefaults", "-no-user-config", "-no-reboot", "-S"]) expect(argv).toContain(flag);
  expect(after("-display")).toEqual(["none"]);
  for (const memory of after("-object")) expect(fieldsOf(memory ?? "")).toContain("share=on");
  expect(
    argv.filter((word) => /^-(net|nic|netdev|monitor|vga|usb|daemonize|run-with|user|chroot)$/.test(word)),
  ).toEqual([]);
});

test("virtiofsd and the vsock device take each value as an argument of its own", () => {
  const share = shareArgv({
    virtiofsd: "virtiofsd",
    directory: NASTY,
    socket: NASTY,
    logFile: "",
    client: null,
    restores: false,
  });
  expect(share.filter((word) => word.includes("share=off"))).toEqual([NASTY, NASTY]);
  expect(share).toEqual(
    expect.arrayContaining(["--sandbox=namespace", "--seccomp=kill", "--inode-file-handles=never"]),
  );
  expect(share.join(" ")).toMatch(/--rlimit-nofile=[1-9]\d*/);
  const address = {
    sandbox_id: "sbx_1",
    guest_cid: 9100,
    device_socket: NASTY,
    guest_socket: NASTY,
    log_file: "",
    users: null,
  };
  expect(deviceArgv("vsock", address)).toEqual([
    "vsock",
    "--guest-cid",
    "9100",
    "--socket",
    NASTY,
    "--uds-path",
    NASTY,
    "--tx-buffer-size",
    "262144",
    "--groups",
    "sbx_1",
  ]);
});

test("freed memory is returned if the machine was saved with the balloon device, and never requested", () => {
  const spec = specOf("/plain");
  const balloons = (returns_memory: boolean) =>
    qemuArgv("qemu", { ...spec, hardware: { ...spec.hardware, returns_memory } }).filter((word) =>
      word.includes("balloon"),
    );
  expect(balloons(true)).toEqual(["virtio-balloon-pci,id=balloon0,free-page-reporting=on,bus=pcie.0,addr=0x7"]);
  expect(balloons(false)).toEqual([]);
});
