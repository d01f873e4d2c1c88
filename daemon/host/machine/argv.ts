/** QEMU's command line. Pure: a spec in, arguments out; every value is typed or escaped. */
import { type MachineSpec, portsOf } from "./spec.ts";

/** Bytes of translated code that TCG may keep, per guest. */
export const TCG_BUFFER_MIB = 128;

export function qemuArgv(qemu: string, spec: MachineSpec): string[] {
  const { hardware } = spec;
  const tcg = hardware.acceleration === "tcg";
  return [
    qemu,
    ...option("-name", "", { guest: spec.name }),
    "-uuid",
    spec.uuid,
    "-accel",
    tcg ? `tcg,thread=multi,tb-size=${TCG_BUFFER_MIB}` : "kvm",
    ...option("-machine", hardware.machine_type, {
      "memory-backend": "ram0",
      usb: "off",
      vmport: "off",
      smbus: "off",
      sata: "off",
      "kernel-irqchip": tcg ? undefined : "on",
    }),
    "-cpu",
    hardware.cpu_model,
    "-m",
    `size=${hardware.base_memory_mib}M,maxmem=${hardware.base_memory_mib + hardware.max_plugged_mib}M`,
    // vhost-user back ends write into the guest's memory: private memory would send their writes into the template.
    ...option("-object", "memory-backend-memfd", { id: "ram0", size: `${hardware.base_memory_mib}M`, share: "on" }),
    ...option("-object", "memory-backend-memfd", {
      id: "plugged0",
      size: `${hardware.max_plugged_mib}M`,
      share: "on",
      reserve: "off",
    }),
    "-smp",
    `cpus=${spec.vcpu_count},sockets=1,cores=${spec.vcpu_count},threads=1`,
    "-nodefaults",
    "-no-user-config",
    "-no-reboot",
    "-display",
    "none",
    ...option("-rtc", "", { base: "utc", clock: "host" }),
    "-kernel",
    spec.kernel,
    "-initrd",
    spec.initramfs,
    "-append",
    spec.append,
    ...option("-blockdev", "", { driver: "file", "node-name": "disk-file", filename: spec.disk }),
    ...option("-blockdev", "", { driver: "qcow2", "node-name": "disk", file: "disk-file", discard: "unmap" }),
    // If the host has no space for a guest's disk, the guest stalls until there is; an error would break its file system.
    ...device("virtio-blk-pci", { id: "disk0", drive: "disk", werror: "enospc", bus: "pcie.0", addr: "0x2" }),
    ...(spec.input === undefined
      ? []
      : [
          ...option("-blockdev", "", { driver: "file", "node-name": "input", filename: spec.input, "read-only": "on" }),
          ...device("virtio-blk-pci", { id: "disk1", drive: "input", bus: "pcie.0", addr: "0x8" }),
        ]),
    ...device("virtio-rng-pci", { id: "rng0", bus: "pcie.0", addr: "0x3" }),
    ...device("virtio-mem-pci", { id: "mem0", memdev: "plugged0", "requested-size": "0", bus: "pcie.0", addr: "0x4" }),
    ...portsOf(hardware).flatMap((id, index) =>
      device("pcie-root-port", {
        id,
        bus: "pcie.0",
        addr: `0x5.0x${index}`,
        chassis: `${index + 1}`,
        slot: `${index + 1}`,
        multifunction: index === 0 ? "on" : undefined,
      }),
    ),
    ...device("pvpanic-pci", { id: "panic0", bus: "pcie.0", addr: "0x6" }),
    // Free page reporting: the guest driver, which guest root controls, reports free pages, and QEMU discards them from this guest's own
    // memory, so that they read as zeros, and nothing else. The balloon is never inflated: that would take promised memory from a guest.
    ...(hardware.returns_memory
      ? device("virtio-balloon-pci", { id: "balloon0", "free-page-reporting": "on", bus: "pcie.0", addr: "0x7" })
      : []),
    ...device("vmgenid", { guid: "auto", id: "generation0" }),
    ...serverSocket("console", spec.sockets.console),
    "-serial",
    "chardev:console",
    ...serverSocket("qmp", spec.sockets.qmp),
    ...option("-mon", "", { chardev: "qmp", mode: "control" }),
    // A second client of one monitor socket would wait unnoticed behind the first.
    ...serverSocket("qmp-spare", spec.sockets.qmp_spare),
    ...option("-mon", "", { chardev: "qmp-spare", mode: "control" }),
    ...option("-sandbox", "on", {
      obsolete: "deny",
      elevateprivileges: "deny",
      spawn: "deny",
      resourcecontrol: "deny",
    }),
    "-S",
    ...(spec.incoming ? ["-incoming", "defer"] : []),
  ];
}

type Values = Record<string, string | undefined>;

function device(driver: string, values: Values): string[] {
  return option("-device", driver, values);
}

function serverSocket(id: string, path: string): string[] {
  return option("-chardev", "socket", { id, path, server: "on", wait: "off" });
}

/** `-flag head,name=value,…`; a comma in a value is doubled, which is how QEMU reads one. */
function option(flag: string, head: string, values: Values): string[] {
  const pairs = Object.entries(values).flatMap(([name, value]) =>
    value === undefined ? [] : [`${name}=${value.replaceAll(",", ",,")}`],
  );
  return [flag, [...(head === "" ? [] : [head]), ...pairs].join(",")];
}
