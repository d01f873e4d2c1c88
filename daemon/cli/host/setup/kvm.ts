/** Access to KVM in setup: the users of guests' QEMU open it by its group, which udev assigns if QEMU's packages installed a rule. */
import { chmodSync, chownSync, existsSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { dirname } from "node:path";
import { kvmGroups } from "../../../host/isolation/index.ts";
import { runProgram } from "../../../host/process.ts";

const GROUP = "kvm";
const GROUP_DEADLINE_MS = 30_000;
const FOR_ALL = 0o006;
const FOR_GROUP = 0o660;

interface Host {
  device: string;
  /** Written only if udev is installed. */
  rule: string;
  /** Resolves to the group's id; creates the group if it is missing. */
  groupId(): Promise<number>;
}

const THIS_HOST: Host = {
  device: "/dev/kvm",
  rule: "/etc/udev/rules.d/65-roomd-kvm.rules",
  groupId: async () => {
    if (groupIn(readFileSync("/etc/group", "utf8")) === null)
      await runProgram(["groupadd", "--system", GROUP], GROUP_DEADLINE_MS);
    return groupIn(readFileSync("/etc/group", "utf8")) ?? 0;
  },
};

/**
 * Makes the device accessible to a group if only root can use it, now and after later boots. Resolves to a sentence, or null if nothing had
 * to be done.
 */
export async function provideKvm({ device, rule, groupId }: Host = THIS_HOST): Promise<string | null> {
  if (!existsSync(device) || isUsable(device)) return null;
  const gid = await groupId();
  chownSync(device, 0, gid);
  chmodSync(device, FOR_GROUP);
  const rules = dirname(rule);
  if (existsSync(rules))
    writeFileSync(rule, `KERNEL=="kvm", GROUP="${GROUP}", MODE="0660", OPTIONS+="static_node=kvm"\n`);
  return `${device} was root's alone; the group ${GROUP} may use it now`;
}

function isUsable(device: string): boolean {
  return (statSync(device).mode & FOR_ALL) === FOR_ALL || kvmGroups(device).length > 0;
}

/** The group's id in the text of /etc/group. */
export function groupIn(text: string): number | null {
  const line = text.split("\n").find((each) => each.startsWith(`${GROUP}:`));
  const id = Number(line?.split(":")[2] ?? Number.NaN);
  return Number.isInteger(id) && id > 0 ? id : null;
}
