/** Entry of the aside thread. */
import { serveTasks } from "../host/aside/serve.ts";
import { TASKS } from "./aside-tasks.ts";

serveTasks(TASKS);
