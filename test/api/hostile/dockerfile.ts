/** Dockerfiles whose variables expand to gigabytes. */
import { type Attack, call, keepCalling } from "../../harness/hostile/attack.ts";

const EXPANSIONS = 66_000;
const VALUE = "x".repeat(60_000);

export default {
  title: "Dockerfiles of 256 KiB with 66,000 expansions of 60 KB",
  attack: async (target, count) => {
    const dockerfile = `ARG a=${VALUE}\nARG ${"$a ".repeat(EXPANSIONS)}`
      .slice(0, 262_000)
      .concat("\nFROM r.example/x\n");
    await keepCalling(2, count, (n) =>
      call(target, "POST", "/v1/templates", { template_id: `t-${n}`, from: { dockerfile } }),
    );
  },
} satisfies Attack;
