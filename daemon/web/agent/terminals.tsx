import { Empty } from "../parts/parts.tsx";
export default function T() { return <Empty title="x" />; }
