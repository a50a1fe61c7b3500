package wire

// magic begins every document of [MessagePack]: a byte that MessagePack itself never
// uses and that begins no JSON, then "HW".
const magic = "\xc1HW"

func isPacked(data []byte) bool { return len(data) > 0 && data[0] == magic[0] }
