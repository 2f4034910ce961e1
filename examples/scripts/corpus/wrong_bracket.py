matrix = [[1, 2], [3, 4]]
flat = [cell for row in matrix for cell in row]
print(flat)
print(matrix[1)[0])
